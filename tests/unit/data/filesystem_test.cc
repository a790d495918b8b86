#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/control.h"
#include "tests/unit/data/rig.h"
#include "trace/trace.h"

namespace streamfs::data {
namespace {

// ---- Times

TEST(Times, OfWhatTheKernelWritesBackAreTheKernels) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(100, 'a')).ok());
  meta::AttributeChange told;
  told.mtime = told.ctime = Timestamp{1'000, 7};
  told.lazily = true;
  ASSERT_TRUE(rig.fs().set_attributes(id, told).ok());
  // Late, and past a gap whose block has to be zeroed.
  ASSERT_TRUE(rig.fs().write(id, 9000, Rig::filled(100, 'b'), meta::WriteTimes::kSetByKernel).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_EQ(rig.fs().attributes(id)->size, 9100U);
  EXPECT_EQ(rig.fs().attributes(id)->mtime, *told.mtime);
  EXPECT_EQ(rig.fs().attributes(id)->ctime, *told.ctime);
  ASSERT_TRUE(rig.write(id, 9100, Rig::filled(100, 'c')).ok());
  EXPECT_NE(rig.fs().attributes(id)->mtime, *told.mtime);
}

// ---- Failures

TEST(FailedWrite, TellsTheCallerAndLosesNothing) {
  Rig rig(Rig::writing_at_once());
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(8192, 'a')).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  const uint64_t free = rig.fs().space().free_blocks;
  blockdev::Faults faults;
  faults.fail_writes_after = 0;
  rig.device().set_faults(faults);
  EXPECT_EQ(rig.write(id, 8192, Rig::filled(8192, 'b')).error().code, EIO);
  rig.device().set_faults({});
  EXPECT_EQ(rig.fs().attributes(id)->size, 8192U);
  EXPECT_EQ(rig.read(id, 0, 20000), Rig::filled(8192, 'a'));
  EXPECT_EQ(rig.fs().space().free_blocks, free) << "reserved blocks came back";
  EXPECT_TRUE(rig.write(id, 8192, Rig::filled(10, 'c')).ok());
}

TEST(NoSpace, IsSaidAndDeletingHelpsAtOnce) {
  Rig::Options options;
  options.blocks = 1024;
  Rig rig(options);
  const InodeId big = rig.create("big"), small = rig.create("small");
  Result<void> done;
  uint64_t at = 0;
  for (; done.ok(); at += 65536) done = rig.write(big, at, Rig::filled(65536, 'b'));
  EXPECT_EQ(done.error().code, ENOSPC);
  EXPECT_EQ(rig.write(small, 0, Rig::filled(300000, 's')).error().code, ENOSPC);
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "big").ok());
  rig.fs().forget(big, 1);
  // No timer has run: the write itself gets the space back.
  ASSERT_TRUE(rig.write(small, 0, Rig::filled(300000, 's')).ok());
  EXPECT_EQ(rig.read(small, 0, 400000), Rig::filled(300000, 's'));
}

TEST(NoSpace, TruncatedSpaceIsFoundByTheNextWrite) {
  Rig::Options options;
  options.blocks = 1024;
  Rig rig(options);
  const InodeId id = rig.create("f");
  for (int round = 0; round < 5; ++round) {
    Result<void> done;
    for (uint64_t at = 0; at < 700 * kBlockSize && done.ok(); at += 65536) {
      done = rig.write(id, at, Rig::filled(65536, 'b' + round));
    }
    ASSERT_TRUE(done.ok()) << done.error().message();
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.fs().truncate(id, 0).ok());
  }
}

TEST(Corruption, IsFoundCountedAndNeverReturned) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(20000, 'a')).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  const BlockNo block = rig.fs().engine().map(id, FileBlock{1}, 1)->front().block;
  rig.ram().block(block.value)[77] ^= std::byte{1};
  std::vector<std::byte> out(20000);
  EXPECT_EQ(rig.fs().read(id, 0, out).error().code, EIO);
  EXPECT_EQ(rig.fs().write(id, 5000, Rig::filled(10, 'b')).error().code, EIO)
      << "not overlaid either";
  EXPECT_EQ(rig.fs().status()->checksum_errors, 2U);
  ASSERT_TRUE(rig.write(id, 4096, Rig::filled(4096, 'c')).ok()) << "a whole new block mends it";
  EXPECT_TRUE(rig.fs().read(id, 0, out).ok());
}

// A cut may keep an append's bytes on the device and not its size.
class LeftoverTail : public testing::TestWithParam<int> {};

TEST_P(LeftoverTail, NeverShowsWhenTheFileGrowsOverIt) {
  Rig::Options options;
  options.volatile_cache = false;
  Rig rig(options);
  InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(100, 'a')).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  ASSERT_TRUE(rig.write(id, 100, Rig::filled(3900, 'x')).ok());
  rig.power_cut(1);
  id = rig.lookup("f");
  ASSERT_EQ(rig.fs().attributes(id)->size, 100U);
  switch (GetParam()) {
    case 0:
      ASSERT_TRUE(rig.fs().truncate(id, 8192).ok());
      break;
    case 1:
      ASSERT_TRUE(rig.write(id, 5000, Rig::filled(1, 'z')).ok());
      break;
    case 2:
      ASSERT_TRUE(rig.write(id, 4095, Rig::filled(1, 0)).ok());
      break;
    default:
      ASSERT_TRUE(rig.fs().allocate(id, 0, 0, 9000).ok());
  }
  EXPECT_EQ(rig.read(id, 100, 3996), Rig::filled(3996, 0));
}

INSTANTIATE_TEST_SUITE_P(Ways, LeftoverTail, testing::Range(0, 4));

// ---- Concurrency

TEST(Concurrency, AReadSeesAWriteWholeOrNotAtAll) {
  Rig::Options options;
  options.faulty = false;
  Rig rig(options);
  const InodeId id = rig.create("f");
  constexpr size_t kSize = 40'000;
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kSize, 1)).ok());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int w = 0; w < 2; ++w) {
    threads.emplace_back([&, w] {
      for (int i = 0; i < 300; ++i)
        ASSERT_TRUE(rig.write(id, 1000, Rig::filled(kSize - 1000, 2 + w)).ok());
    });
  }
  std::thread syncer([&] {
    while (!stop) ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  });
  std::thread reader([&] {
    while (!stop) {
      const auto bytes = rig.read(id, 1000, kSize);
      ASSERT_EQ(bytes, std::vector<std::byte>(kSize - 1000, bytes.at(0)));
    }
  });
  for (auto& thread : threads) thread.join();
  stop = true;
  reader.join();
  syncer.join();
  EXPECT_EQ(rig.fs().status()->checksum_errors, 0U);
}

TEST(Concurrency, FilesOfManyThreadsStayTheirOwn) {
  Rig::Options options;
  options.faulty = false;
  options.blocks = 16384;
  Rig rig(options);
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 15; ++round) {
        const std::string name = "t" + std::to_string(t) + "-" + std::to_string(round);
        const InodeId id = rig.create(name);
        for (uint64_t at = 0; at < 200'000; at += 7000) {
          ASSERT_TRUE(rig.write(id, at, Rig::filled(7000, t)).ok());
        }
        if (round % 3 == 0) {
          ASSERT_TRUE(rig.fs().fsync(id, false).ok());
        }
        ASSERT_EQ(rig.read(id, 0, 203'000), Rig::filled(203'000, t));
        ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), name).ok());
        rig.fs().forget(id, 1);
      }
    });
  }
  std::thread keeper([&] {
    for (int i = 0; i < 50; ++i) {
      rig.clock().ms += 1100;
      rig.fs().maintenance().timer_round();
      (void)rig.fs().maintenance().reclaim();
    }
  });
  for (auto& thread : threads) thread.join();
  keeper.join();
}

// ---- Hints

TEST(Hints, TheXattrSaysSetsAndClears) {
  Rig rig;
  const InodeId id = rig.create("f");
  EXPECT_EQ(rig.fs().get_xattr(id, wire::kVStreamXattr).error().code, ENODATA);
  ASSERT_TRUE(rig.fs().set_xattr(id, wire::kVStreamXattr, "wal", 0).ok());
  EXPECT_EQ(rig.fs().get_xattr(id, wire::kVStreamXattr).value(), "wal");
  EXPECT_EQ(rig.fs().list_xattr(id).value(), std::vector<std::string>{wire::kVStreamXattr});
  ASSERT_TRUE(rig.fs().set_xattr(id, wire::kVStreamXattr, "77", 0).ok());
  EXPECT_EQ(rig.fs().hint_query(id)->vstream.value, 77);
  EXPECT_EQ(rig.fs().set_xattr(id, wire::kVStreamXattr, "65536", 0).error().code, ERANGE);
  ASSERT_TRUE(rig.fs().remove_xattr(id, wire::kVStreamXattr).ok());
  EXPECT_EQ(rig.fs().get_xattr(id, wire::kVStreamXattr).error().code, ENODATA);
}

TEST(Hints, ADirectoryPassesItsOwnOn) {
  Rig rig;
  const InodeId dir = rig.fs().create(rig.fs().root(), "d", 0040755, 0, {}, {})->id;
  ASSERT_TRUE(rig.fs().hint_name(dir, "logs").ok());
  const auto file = rig.fs().create(dir, "x-journal", 0100644, 0, {}, {});
  EXPECT_EQ(rig.fs().placement().describe(file->vstream), "logs") << "beats the name rule";
  const auto sub = rig.fs().create(dir, "sub", 0040755, 0, {}, {});
  EXPECT_TRUE(sub->vstream_hinted);
}

TEST(Hints, AWriteCarriesItsVStreamAndPStream) {
  Rig::Options options = Rig::writing_at_once();
  options.volatile_cache = false;
  Rig rig(options);
  const InodeId id = rig.create("f");
  const HintReply reply = rig.fs().hint_name(id, "hot").value();
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(100, 1)).ok());
  EXPECT_EQ(rig.ram().last_tag.vstream, reply.vstream);
  EXPECT_EQ(rig.ram().last_tag.placement, rig.ram().placement(reply.pstream));
  EXPECT_NE(reply.pstream, kDefaultPStream);
}

TEST(Hints, ALearningMountSaysThatItIgnoresThem) {
  Rig::Options options;
  options.mount.placement = placement::Mode::kLearned;
  Rig rig(options);
  const InodeId id = rig.create("f");
  EXPECT_TRUE(rig.fs().hint_number(id, 9)->ignored);
  EXPECT_FALSE(rig.fs().attributes(id)->vstream_hinted);
}

TEST(Hints, WithoutStreamsTheyStillGetRegionsOfTheirOwn) {
  Rig::Options options;
  options.pstreams = 1;
  options.faulty = false;
  options.blocks = 16384;
  Rig rig(options);
  const InodeId a = rig.create("a"), b = rig.create("b");
  EXPECT_EQ(rig.fs().hint_name(a, "one")->pstream, kDefaultPStream) << "there is no other";
  ASSERT_TRUE(rig.fs().hint_name(b, "two").ok());
  for (uint64_t at = 0; at < 1 << 20; at += 65536) {
    ASSERT_TRUE(rig.write(a, at, Rig::filled(65536, 1)).ok());
    ASSERT_TRUE(rig.write(b, at, Rig::filled(65536, 2)).ok());
    EXPECT_EQ(rig.ram().last_tag.placement, blockdev::Placement{});
  }
  const auto region = [&](InodeId id) {
    const auto pieces = rig.fs().engine().map(id, FileBlock{0}, 256).value();
    EXPECT_EQ(pieces.size(), 1U) << "one extent";
    return pieces[0].block.value / meta::BlockAllocator::kRegionBlocks;
  };
  EXPECT_NE(region(a), region(b));
}

TEST(Hints, SurviveARemount) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.fs().hint_name(id, "wal").ok());
  rig.remount();
  EXPECT_EQ(rig.fs().get_xattr(rig.lookup("f"), wire::kVStreamXattr).value(), "wal");
}

// ---- Traces

TEST(Trace, HoldsWhatTheDeviceWasSentWhileItWasOn) {
  Rig rig;
  const InodeId id = rig.create("f");
  const std::string path = testing::TempDir() + "streamfs-trace-" + std::to_string(::getpid());
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(8192, 1)).ok());
  ASSERT_TRUE(rig.fs().start_trace(path).ok());
  EXPECT_EQ(rig.fs().start_trace(path).error().code, EALREADY);
  const VStreamId hot = rig.fs().hint_name(id, "hot")->vstream;
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(12288, 2)).ok());
  ASSERT_TRUE(rig.fs().stop_trace().ok());
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(4096, 3)).ok());
  auto reader = std::move(trace::TraceReader::open(path)).value();
  uint64_t bytes = 0;
  uint32_t request = 0;
  for (trace::TraceRecord record; reader->next(record).value();) {
    EXPECT_EQ(record.op, trace::TraceOp::kWrite);
    EXPECT_EQ(record.vstream, hot.value);
    EXPECT_TRUE(request == 0 || record.request == request) << "one request";
    request = record.request;
    bytes += record.length;
  }
  EXPECT_EQ(bytes, 12288U);
  ::unlink(path.c_str());
}

// ---- Reading and seeking

TEST(Seek, FindsDataAndHolesAsTheFileHasThem) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 100'000, Rig::filled(10, 1)).ok());
  EXPECT_EQ(rig.fs().seek(id, 0, SEEK_DATA).value(), 98304U);
  EXPECT_EQ(rig.fs().seek(id, 99'000, SEEK_DATA).value(), 99'000U);
  EXPECT_EQ(rig.fs().seek(id, 5, SEEK_HOLE).value(), 5U);
  EXPECT_EQ(rig.fs().seek(id, 99'000, SEEK_HOLE).value(), 100'010U);
  EXPECT_EQ(rig.fs().seek(id, 100'010, SEEK_DATA).error().code, ENXIO);
}

TEST(Limits, WhatCannotBeIsRefused) {
  Rig rig;
  const InodeId id = rig.create("f");
  for (const int mode : {FALLOC_FL_UNSHARE_RANGE, FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE})
    EXPECT_EQ(rig.fs().allocate(id, mode, 0, 4096).error().code, EOPNOTSUPP) << mode;
  EXPECT_EQ(rig.fs().write(id, kMaxFileBytes, Rig::filled(1, 1)).error().code, EFBIG);
}

TEST(Limits, TheLastBlockOfTheLargestFileIsKept) {
  Rig rig;
  const InodeId id = rig.create("f");
  const uint64_t last = kMaxFileBytes - kBlockSize;
  const auto data = Rig::filled(kBlockSize, 7);
  ASSERT_TRUE(rig.fs().write(id, last, data).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  rig.remount();
  EXPECT_EQ(rig.fs().attributes(id).value().size, kMaxFileBytes);
  EXPECT_EQ(rig.read(id, last, kBlockSize), data);
  ASSERT_TRUE(rig.fs().truncate(id, 0).ok());
  EXPECT_EQ(rig.fs().attributes(id).value().blocks, 0U);
}

}  // namespace
}  // namespace streamfs::data
