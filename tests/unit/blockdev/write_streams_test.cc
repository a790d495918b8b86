// The kernel's write streams: what /sys is read for, the byte of an entry, and a real block device
// that has none. No device that has some has taken part.
#include "fuse-fs/blockdev/write_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <liburing.h>
#include <linux/loop.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/describe.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/identity.h"
#include "fuse-fs/blockdev/io_engine.h"
#include "fuse-fs/blockdev/uring_engine.h"
#include "fuse-fs/uring/ring.h"

namespace streamfs::blockdev {
namespace {

class WriteStreamsTest : public ::testing::Test {
 protected:
  WriteStreamsTest() {
    const char* base = std::getenv("TMPDIR");
    root_ = std::string(base != nullptr ? base : "/tmp") + "/streamfs-streams.XXXXXX";
    SFS_ASSERT(mkdtemp(root_.data()) != nullptr);
  }
  ~WriteStreamsTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void put(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::string root_;
};

TEST_F(WriteStreamsTest, TheQueueSaysHowManyThereAre) {
  EXPECT_NE(write_streams_of(root_).why.find("Linux 6.16"), std::string::npos);
  for (const auto& [said, count] :
       {std::pair{"0", 0}, {"1", 0}, {"2", 2}, {"8", 8}, {"300", 128}, {"70000", 128}}) {
    put("queue/max_write_streams", said);
    const WriteStreams streams = write_streams_of(root_);
    EXPECT_EQ(streams.count, count) << said;
    EXPECT_EQ(streams.why.empty(), count > 0) << said;
  }
  EXPECT_EQ(write_streams_of(root_).granularity_bytes, 0u);
  put("queue/write_stream_granularity", "4294967295");  // Linux 6.16 says this of every SSD
  EXPECT_EQ(write_streams_of(root_).granularity_bytes, 0u);
  put("queue/write_stream_granularity", "100663296");
  EXPECT_EQ(write_streams_of(root_).granularity_bytes, 96u << 20);
  put("partition", "1");
  EXPECT_EQ(write_streams_of(root_).count, 0);
  EXPECT_NE(write_streams_of(root_).why.find("partition"), std::string::npos);
}

TEST(WriteStreams, TheFirstPStreamIsTheDevicesOwnFirstHandle) {
  EXPECT_EQ(write_stream_placement(PStreamId{0}, 8), Placement{});
  EXPECT_EQ(write_stream_placement(PStreamId{1}, 8), (Placement{16, 2}));
  EXPECT_EQ(write_stream_placement(PStreamId{7}, 8), (Placement{16, 8}));
  EXPECT_EQ(write_stream_placement(PStreamId{8}, 8), Placement{});
  EXPECT_EQ(write_stream_of(write_stream_placement(PStreamId{7}, 8)), 8);
  for (const Placement other : {Placement{}, {1, 3}, {2, 3}}) EXPECT_EQ(write_stream_of(other), 0);
}

// include/uapi/linux/io_uring.h: opcode, flags, ioprio, fd at 4, off at 8, addr at 16, len at 24,
// rw_flags at 28, user_data at 32, buf_index at 40, personality at 42, write_stream at 44.
TEST(WriteStreams, AnEntryHasTheStreamInByte44AndNothingElseChanges) {
  io_uring_sqe entry;
  std::memset(&entry, 0, sizeof entry);
  io_uring_prep_write(&entry, 3, reinterpret_cast<void*>(0x1122334455667788), 0x2000, 0x10000);
  std::vector<std::byte> expected(sizeof entry);
  std::memcpy(expected.data(), &entry, sizeof entry);
  EXPECT_EQ(expected[0], std::byte{23});  // IORING_OP_WRITE
  EXPECT_EQ(expected[44], std::byte{0});
  set_write_stream(entry, 0xa7);
  expected[44] = std::byte{0xa7};
  EXPECT_EQ(std::memcmp(&entry, expected.data(), sizeof entry), 0);
}

// Takes down which streams writes name, and refuses them if told to.
class Recorder final : public IoEngine {
 public:
  struct Log {
    std::vector<int> streams;
    int refuse_with = 0;  // writes that name a stream
    int fail_with = 0;    // everything
  };
  explicit Recorder(Log& log) : log_(log) {}
  const char* name() const override { return "recorder"; }
  bool takes_streams() const override { return true; }
  void write(uint64_t, ConstBytes, uint8_t stream, IoDone done) override {
    log_.streams.push_back(stream);
    const int code = stream != 0 && log_.refuse_with != 0 ? log_.refuse_with : log_.fail_with;
    done(code != 0 ? Result<void>(Error{code}) : Result<void>());
  }
  void read(uint64_t, Bytes, IoDone done) override { done({}); }
  Result<void> fdatasync() override { return {}; }

 private:
  Log& log_;
};

int written(IoEngine& engine, uint8_t stream) {
  int code = -1;
  engine.write(0, {}, stream, [&](const Result<void>& done) {
    EXPECT_EQ(code, -1);
    code = done.ok() ? 0 : done.error().code;
  });
  return code;
}

TEST(WriteStreams, AWriteRefusedForItsStreamIsSentAgainWithoutAndNoMoreAreNamed) {
  Recorder::Log log;
  std::vector<int> plain;
  StreamEngine engine(std::make_unique<Recorder>(log), "x",
                      [&](uint8_t stream, uint64_t) { plain.push_back(stream); });
  EXPECT_EQ(written(engine, 3), 0);
  EXPECT_TRUE(engine.takes_streams());
  log.refuse_with = EINVAL;
  EXPECT_EQ(written(engine, 4), 0);
  EXPECT_EQ(written(engine, 5), 0);
  EXPECT_EQ(log.streams, (std::vector<int>{3, 4, 0, 0}));
  EXPECT_EQ(plain, (std::vector<int>{4, 5})) << "so they count on no stream";
  EXPECT_FALSE(engine.takes_streams());
}

TEST(WriteStreams, WhatFailsForAnotherReasonFailsAndStreamsStay) {
  Recorder::Log log;
  log.refuse_with = EIO;
  StreamEngine engine(std::make_unique<Recorder>(log), "x", [](uint8_t, uint64_t) {});
  EXPECT_EQ(written(engine, 3), EIO);
  log.refuse_with = 0;
  log.fail_with = EINVAL;  // with a stream and without
  EXPECT_EQ(written(engine, 4), EINVAL);
  log.fail_with = 0;
  EXPECT_EQ(written(engine, 5), 0);
  EXPECT_EQ(log.streams, (std::vector<int>{3, 4, 0, 5}));
}

// A file of 16 MiB behind a loop device; `path` is empty where there can be none.
class Loop {
 public:
  explicit Loop(const std::string& file) {
    backing_ = open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    SFS_ASSERT(backing_ >= 0 && ftruncate(backing_, kBytes) == 0);
    const int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    const int number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
    if (control >= 0) close(control);
    if (number < 0) return;
    const std::string name = "/dev/loop" + std::to_string(number);
    loop_ = open(name.c_str(), O_RDWR | O_CLOEXEC);
    loop_config config{};
    config.fd = static_cast<uint32_t>(backing_);
    config.block_size = kBlockSize;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (loop_ >= 0 && ioctl(loop_, LOOP_CONFIGURE, &config) == 0) path = name;
  }
  ~Loop() {
    if (loop_ >= 0) close(loop_);
    close(backing_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  uint64_t bytes_there() const {
    struct stat st{};
    SFS_ASSERT(fstat(backing_, &st) == 0);
    return static_cast<uint64_t>(st.st_blocks) * 512;
  }

  static constexpr int64_t kBytes = 16 << 20;
  std::string path;

 private:
  int backing_ = -1, loop_ = -1;
};

TEST_F(WriteStreamsTest, ABlockDeviceWithoutThemIsOneStreamAndSaysWhy) {
  const Loop loop(root_ + "/disk");
  if (loop.path.empty()) GTEST_SKIP() << "no loop device to be had";
  const auto opened = open_device(loop.path, {.wait_seconds = 5});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  Device& device = **opened;
  const nlohmann::json described = describe(device);
  EXPECT_EQ(described["kind"], "block");
  EXPECT_EQ(described["pstreams"], 1);
  EXPECT_EQ(described["placement"]["mechanism"], "none");
  EXPECT_NE(described["placement"]["why"].get<std::string>().find("write streams"),
            std::string::npos);
  EXPECT_NE(described["transport"], "");
  std::vector<std::byte> bytes(256 * kBlockSize, std::byte{7});
  IoBatch batch(device);
  batch.write(BlockNo{0}, bytes, {device.placement(PStreamId{1}), {}});
  ASSERT_TRUE(batch.wait().ok());
  ASSERT_TRUE(device.flush().ok());
  const uint64_t before = loop.bytes_there();
  ASSERT_TRUE(device.trim(BlockNo{0}, 128).ok());  // a discard, which a loop device passes on
  EXPECT_EQ(loop.bytes_there(), before - 128 * kBlockSize);
  batch.read(BlockNo{0}, bytes);
  ASSERT_TRUE(batch.wait().ok());
  EXPECT_EQ(bytes.front(), std::byte{0});
  EXPECT_EQ(bytes.back(), std::byte{7});
}

// The kernel compares the stream with what the device has, so one that has none shows that the
// byte is where the kernel looks for it.
TEST_F(WriteStreamsTest, TheKernelRefusesAStreamThatTheDeviceHasNotAndTheWriteGoesThrough) {
  const Loop loop(root_ + "/disk");
  if (loop.path.empty()) GTEST_SKIP() << "no loop device to be had";
  const int fd = open(loop.path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  struct stat st{};
  ASSERT_EQ(fstat(fd, &st), 0);
  const bool knows = std::filesystem::exists(sys_directory(st.st_rdev) / "queue/max_write_streams");
  auto ring = UringEngine::open(fd, 4);
  if (!knows || !ring.ok()) {
    close(fd);
    GTEST_SKIP() << (knows ? "no io_uring" : "a kernel before 6.16 ignores streams");
  }
  const std::unique_ptr<std::byte, decltype(&std::free)> block(
      static_cast<std::byte*>(std::aligned_alloc(kBlockSize, kBlockSize)), &std::free);
  std::memset(block.get(), 9, kBlockSize);
  const auto wait_for = [&](IoEngine& engine, uint8_t stream) {
    int code = -1;
    engine.write(0, {block.get(), kBlockSize}, stream,
                 [&](const Result<void>& done) { code = done.ok() ? 0 : done.error().code; });
    while (uring::drive()) {
    }
    return code;
  };
  EXPECT_EQ(wait_for(**ring, 0), 0);
  EXPECT_EQ(wait_for(**ring, 1), EINVAL);
  {
    StreamEngine engine(std::move(*ring), loop.path, [](uint8_t, uint64_t) {});
    EXPECT_EQ(wait_for(engine, 1), 0);
  }
  std::memset(block.get(), 0, kBlockSize);
  EXPECT_EQ(pread(fd, block.get(), kBlockSize, 0), static_cast<ssize_t>(kBlockSize));
  EXPECT_EQ(*block, std::byte{9});
  close(fd);
}

}  // namespace
}  // namespace streamfs::blockdev
