// META grows by itself, and freed metadata space serves every kind of object.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kFilesADirectory = 8;  // of a directory, as META is planned
constexpr uint64_t kRoomyBlocks = 32768;  // 128 MiB: META is planned for 8192 files
constexpr uint64_t kPlannedFiles = kRoomyBlocks * kBlockSize / meta::kMeanFileBytes;

Rig::Options small_meta(bool grows, bool log = true) {
  Rig::Options options = Rig::with_log(pmem::MetaClass::kSynced);
  options.meta_log = log;
  options.blocks = kRoomyBlocks;
  options.meta_bytes = 3 << 20;
  options.faulty = false;
  options.mount.meta_growth = grows;
  return options;
}

// Makes directories, each with the seven files after it, until there are `most` entries.
Result<void> fill_meta(Rig& rig, uint64_t most, uint64_t& made) {
  for (InodeId directory = rig.fs().root(); made < most; ++made) {
    const bool opens = made % kFilesADirectory == 0;
    const auto one = rig.fs().create(opens ? rig.fs().root() : directory, fmt::format("{}", made),
                                     opens ? 0040755 : 0100644, 0, {}, {});
    if (!one) return one.error();
    if (opens) directory = one->id;
  }
  return {};
}

void expect_names(Rig& rig, uint64_t made) {
  InodeId directory = rig.fs().root();
  for (uint64_t i = 0; i < made; ++i) {
    const bool opens = i % kFilesADirectory == 0;
    const auto found = rig.fs().lookup(opens ? rig.fs().root() : directory, fmt::format("{}", i));
    ASSERT_TRUE(found.ok()) << i << ": " << found.error().message();
    if (opens) directory = found->id;
  }
}

TEST(MetaGrowth, EveryPlannedFileFitsAndOutlivesALossOfMeta) {
  Rig rig(small_meta(true));
  const uint64_t first = rig.fs().geometry().meta_size();
  EXPECT_GE(rig.fs().space().inodes_possible, kPlannedFiles);
  uint64_t made = 0;
  const Result<void> done = fill_meta(rig, kPlannedFiles, made);
  ASSERT_TRUE(done.ok()) << made << ": " << done.error().message();
  EXPECT_GT(rig.fs().geometry().meta_size(), 2 * first);
  ASSERT_TRUE(rig.fs().sync().ok());
  rig.remount();
  expect_names(rig, made);
  ASSERT_TRUE(rig.fs().sync().ok());
  rig.kill_losing_meta();
  expect_names(rig, made);
}

TEST(MetaGrowth, TheTimerGrowsItAtNineTenths) {
  Rig::Options options = small_meta(true);
  options.meta_bytes = 5 << 20;
  Rig rig(options);
  const uint64_t units = rig.fs().space().heap_units;
  uint64_t made = 0;
  while (rig.fs().space().free_units > units / 10 + 4) {
    ASSERT_TRUE(fill_meta(rig, made + kFilesADirectory, made).ok());
  }
  rig.fs().maintenance().meta_round();
  EXPECT_EQ(rig.fs().space().heap_units, units);
  while (rig.fs().space().free_units > units / 10) {
    ASSERT_TRUE(fill_meta(rig, made + kFilesADirectory, made).ok());
  }
  rig.fs().maintenance().meta_round();
  EXPECT_GT(rig.fs().space().heap_units, units * 14 / 10);
}

TEST(MetaGrowth, WithoutItMetaIsFullAndSaysWhatHelps) {
  Rig rig(small_meta(false));
  EXPECT_EQ(rig.fs().status()->meta_room.advice, "");
  uint64_t made = 0;
  EXPECT_EQ(fill_meta(rig, kPlannedFiles, made).error().code, ENOSPC);
  rig.fs().maintenance().meta_round();
  const MetaRoom room = rig.fs().status()->meta_room;
  EXPECT_FALSE(room.grows);
  EXPECT_NE(room.advice.find("streamctl grow --meta-size"), room.advice.npos) << room.advice;
}

TEST(MetaGrowth, TheLargestSizeIsKept) {
  Rig::Options options = small_meta(true);
  options.mount.meta_size_max = options.meta_bytes + (1 << 20);
  Rig rig(options);
  uint64_t made = 0;
  EXPECT_EQ(fill_meta(rig, kPlannedFiles, made).error().code, ENOSPC);
  EXPECT_EQ(rig.fs().geometry().meta_size(), options.mount.meta_size_max);
  const MetaRoom room = rig.fs().status()->meta_room;
  EXPECT_NE(room.advice.find("meta_size_max"), room.advice.npos) << room.advice;
}

// The log needs blocks of DATA for a larger META.
TEST(MetaGrowth, AGrowthThatFailsIsToldAndTriedAgain) {
  Rig rig(small_meta(true));
  const InodeId large = rig.create("large");
  uint64_t at = 0;
  while (rig.write(large, at, Rig::filled(1 << 20, 1)).ok()) at += 1 << 20;
  uint64_t made = 0;
  EXPECT_EQ(fill_meta(rig, kPlannedFiles, made).error().code, ENOSPC);
  const std::string advice = rig.fs().status()->meta_room.advice;
  EXPECT_NE(advice.find("could not grow"), advice.npos) << advice;
  ASSERT_TRUE(rig.fs().truncate(large, 0).ok());
  ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
  rig.fs().maintenance().meta_round();
  EXPECT_EQ(rig.fs().status()->meta_room.advice, advice) << "the pause after a failure";
  rig.clock().ms += 2000;
  rig.fs().maintenance().meta_round();
  const Result<void> done = fill_meta(rig, made + kFilesADirectory, made);
  EXPECT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(rig.fs().status()->meta_room.advice, "");
}

// Until META has no unit left, with growth forbidden; then growth is as asked for.
void fill_to_the_last_unit(Rig& rig, bool grows) {
  uint64_t made = 0;
  ASSERT_EQ(fill_meta(rig, kPlannedFiles, made).error().code, ENOSPC);
  rig.remount_growing(grows);
}

TEST(MetaGrowth, AWriteThatFindsNoUnitMakesItGrow) {
  Rig rig(small_meta(false));
  const InodeId scattered = rig.create("scattered");
  fill_to_the_last_unit(rig, true);
  const uint64_t before = rig.fs().geometry().meta_size();
  for (uint64_t block = 0; block < 4000; ++block) {
    const Result<void> done = rig.write(scattered, 2 * block * kBlockSize, Rig::filled(1, 1));
    ASSERT_TRUE(done.ok()) << block << ": " << done.error().message();
  }
  ASSERT_TRUE(rig.fs().fsync(scattered, false).ok());
  EXPECT_GT(rig.fs().geometry().meta_size(), before);
  rig.remount();
  EXPECT_EQ(rig.read(scattered, 7998 * kBlockSize, 1), Rig::filled(1, 1));
}

TEST(MetaGrowth, APreallocationThatFindsNoUnitMakesItGrow) {
  Rig rig(small_meta(false));
  const InodeId sparse = rig.create("sparse");
  fill_to_the_last_unit(rig, true);
  const uint64_t before = rig.fs().geometry().meta_size();
  for (uint64_t block = 0; block < 4000; ++block) {
    const Result<void> done = rig.fs().allocate(sparse, 0, 2 * block * kBlockSize, kBlockSize);
    ASSERT_TRUE(done.ok()) << block << ": " << done.error().message();
  }
  EXPECT_GT(rig.fs().geometry().meta_size(), before);
}

TEST(MetaGrowth, AWriteIntoPreallocatedBlocksThatFindsNoUnitMakesItGrow) {
  Rig rig(small_meta(false));
  const InodeId file = rig.create("preallocated");
  ASSERT_TRUE(rig.fs().allocate(file, 0, 0, 16'000 * kBlockSize).ok());
  fill_to_the_last_unit(rig, true);
  const uint64_t before = rig.fs().geometry().meta_size();
  for (uint64_t block = 0; block < 8000; block += 2) {
    const Result<void> done = rig.write(file, 2 * block * kBlockSize, Rig::filled(1, 1));
    ASSERT_TRUE(done.ok()) << block << ": " << done.error().message();
  }
  EXPECT_GT(rig.fs().geometry().meta_size(), before);
}

// A growth by command that is held up while it measures DATA, with its lock taken.
class HeldGrowth {
 public:
  explicit HeldGrowth(Rig& rig) : rig_(rig) {
    rig.ram().on_measure = [this] {
      measuring_ = true;
      while (!released_) std::this_thread::yield();
    };
    thread_ = std::thread([this] {
      GrowOptions options;
      options.meta_bytes = rig_.fs().geometry().meta_size() + (8 << 20);
      grown_ = rig_.fs().grow(options).ok();
    });
    while (!measuring_) std::this_thread::yield();
  }
  ~HeldGrowth() { (void)release(); }
  HeldGrowth(const HeldGrowth&) = delete;
  HeldGrowth& operator=(const HeldGrowth&) = delete;

  bool release() {
    released_ = true;
    if (thread_.joinable()) thread_.join();
    return grown_;
  }

 private:
  Rig& rig_;
  std::atomic<bool> measuring_{false}, released_{false}, grown_{false};
  std::thread thread_;
};

TEST(MetaGrowth, AProgramThatFindsNoUnitWaitsForAGrowthByCommand) {
  for (const bool automatic : {true, false}) {
    Rig rig(small_meta(false));
    std::vector<InodeId> files;
    while (files.size() < 300) files.push_back(rig.create(fmt::format("f{}", files.size())));
    fill_to_the_last_unit(rig, automatic);
    HeldGrowth growth(rig);
    std::atomic<bool> ended{false};
    Result<void> done;
    std::thread program([&] {
      for (const InodeId file : files)
        if (done.ok()) done = rig.fs().set_xattr(file, "user.long", std::string(3000, 'x'), 0);
      ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_FALSE(ended) << "it waits";
    EXPECT_TRUE(growth.release());
    program.join();
    EXPECT_TRUE(done.ok()) << done.error().message();
  }
}

TEST(MetaGrowth, WithoutAGrowthToWaitForAProgramIsToldAtOnce) {
  Rig rig(small_meta(false));
  uint64_t made = 0;
  EXPECT_EQ(fill_meta(rig, kPlannedFiles, made).error().code, ENOSPC);
  ASSERT_TRUE(rig.fs().shut_down(ShutdownMode::kDefault).ok()) << "the lock of growths is free";
}

// ---- Freed space. Each kind of object fills META alone, three times in turn.
using FillMeta = std::function<Result<void>(Rig&, InodeId directory, uint64_t number)>;

// The maker's reference is dropped, as after the kernel's FORGET.
Result<InodeId> make(Rig& rig, InodeId in, const std::string& name, uint32_t mode = 0100644) {
  SFS_ASSIGN(const meta::Attributes made, rig.fs().create(in, name, mode, 0, {}, {}));
  rig.fs().forget(made.id, 1);
  return made.id;
}
Result<void> one_file(Rig& rig, InodeId in, uint64_t number) {
  const auto made = make(rig, in, fmt::format("f{}", number));
  return made ? Result<void>() : made.error();
}
Result<void> one_directory(Rig& rig, InodeId in, uint64_t number) {
  SFS_ASSIGN(const InodeId made, make(rig, in, fmt::format("d{}", number), 0040755));
  return one_file(rig, made, 0);
}
Result<void> one_scattered_file(Rig& rig, InodeId in, uint64_t number) {
  SFS_ASSIGN(const InodeId made, make(rig, in, fmt::format("s{}", number)));
  for (uint64_t block = 0; block < 200; ++block)
    SFS_TRY(rig.write(made, 2 * block * kBlockSize, Rig::filled(1, 1)));
  return rig.fs().fsync(made, false);
}
Result<void> one_with_attributes(Rig& rig, InodeId in, uint64_t number) {
  SFS_ASSIGN(const InodeId made, make(rig, in, fmt::format("x{}", number)));
  return rig.fs().set_xattr(made, "user.long", std::string(20'000, 'x'), 0);
}

void remove_tree(Rig& rig, InodeId directory) {
  std::vector<std::string> names;
  const auto take = [&](const meta::DirectoryEntry& entry) {
    if (entry.name != "." && entry.name != "..") names.emplace_back(entry.name);
    return true;
  };
  ASSERT_TRUE(rig.fs().read_directory(directory, 0, take).ok());
  for (const std::string& name : names) {
    const meta::Attributes found = rig.fs().lookup(directory, name).value();
    const bool nested = (found.mode & 0170000) == 0040000;
    if (nested) remove_tree(rig, found.id);
    const Result<void> gone =
        nested ? rig.fs().rmdir(directory, name) : rig.fs().unlink(directory, name);
    ASSERT_TRUE(gone.ok()) << gone.error().message();
    rig.fs().forget(found.id, 1);
  }
}

TEST(MetaSpace, EveryKindOfObjectTakesWhatOthersLeft) {
  Rig::Options options = small_meta(false, false);
  options.blocks = 4096;
  options.meta_bytes = 1 << 20;
  Rig rig(options);
  const std::array<FillMeta, 4> kinds = {one_file, one_directory, one_scattered_file,
                                         one_with_attributes};
  std::array<uint64_t, kinds.size()> fitted{};
  for (int turn = 0; turn < 3; ++turn) {
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      const InodeId folder = make(rig, rig.fs().root(), "all", 0040755).value();
      uint64_t made = 0;
      Result<void> done;
      while ((done = kinds[kind](rig, folder, made)).ok()) ++made;
      ASSERT_EQ(done.error().code, ENOSPC) << done.error().message();
      if (turn == 0) fitted[kind] = made;
      EXPECT_GE(made, fitted[kind] * 95 / 100) << "kind " << kind << ", turn " << turn;
      remove_tree(rig, folder);
      ASSERT_TRUE(rig.fs().rmdir(rig.fs().root(), "all").ok());
      ASSERT_TRUE(rig.fs().sync().ok());
    }
  }
  EXPECT_GE(*std::ranges::min_element(fitted), 10U) << "the fills were no fills";
}

}  // namespace
}  // namespace streamfs::data
