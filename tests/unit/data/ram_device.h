// A data device in memory that counts, and one that only borrows another.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/zeroed_array.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"

namespace streamfs::data {

class RamDevice final : public blockdev::Device {
 public:
  explicit RamDevice(uint64_t blocks, uint16_t pstreams = 4, uint64_t most_blocks = 0,
                     const std::string& kind = "ram")
      : words_(std::max(blocks, most_blocks) * kWordsABlock), blocks_(blocks) {
    info_.kind = kind;
    info_.path = "ram";
    info_.identity = "ram-1";
    info_.capacity_blocks = blocks;
    info_.pstream_count = pstreams;
  }
  const blockdev::DeviceInfo& info() const override { return info_; }
  Result<uint64_t> measure() override {
    if (on_measure) on_measure();
    return blocks_.load();
  }
  // From so many blocks to this many, while it is used: there was room behind it.
  void lengthen(uint64_t blocks) {
    SFS_ASSERT(blocks * kWordsABlock <= words_.items().size());
    blocks_ = blocks;
  }
  void write(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag,
             blockdev::Completion done) override {
    SFS_ASSERT(bytes.size() % kBlockSize == 0);
    SFS_ASSERT((first.value * kBlockSize) + bytes.size() <= blocks_ * kBlockSize);
    fill(first, bytes);
    ++writes;
    written_bytes += bytes.size();
    {
      const std::lock_guard lock(tag_mutex_);
      last_tag = tag;
    }
    if (on_write) on_write();
    done({});
  }
  void read(BlockNo first, Bytes bytes, blockdev::Completion done) override {
    if (read_ms != 0) std::this_thread::sleep_for(std::chrono::milliseconds(read_ms));
    copy_out(first, bytes);
    done({});
  }
  Result<void> flush() override {
    if (flush_ms != 0) std::this_thread::sleep_for(std::chrono::milliseconds(flush_ms));
    ++flushes;
    return on_flush ? on_flush() : Result<void>();
  }
  Result<void> trim(BlockNo first, uint64_t count) override {
    fill(first, std::vector<std::byte>(count * kBlockSize));
    trimmed_blocks += count;
    if (on_trim_of) on_trim_of(first, count);
    if (on_trim) on_trim();
    return {};
  }
  Result<blockdev::DeviceStats> stats() override {
    blockdev::DeviceStats out;
    out.flushes = flushes;
    out.written_bytes = written_bytes;
    return out;
  }
  blockdev::Placement placement(PStreamId stream) const override {
    return stream.value == 0 || stream.value >= info_.pstream_count
               ? blockdev::Placement{}
               : blockdev::Placement{1, stream.value};
  }
  Result<void> release(PStreamId stream) override {
    released.push_back(stream);
    return {};
  }
  blockdev::IdleCapabilities capabilities() const override {
    return {idle_means, "of a test", by_itself_ms_max};
  }
  Result<blockdev::IdleWork> begin_idle(const blockdev::IdleLimits& limits) override {
    ++idle_begun;
    return on_idle ? on_idle(limits) : Result<blockdev::IdleWork>(blockdev::IdleWork{});
  }
  Result<void> end_idle() override {
    ++idle_ended;
    return {};
  }
  void frees_only_units_of(uint64_t blocks) { info_.trim_unit_blocks = blocks; }
  std::byte* block(uint64_t number) {  // while nothing is under way
    return reinterpret_cast<std::byte*>(&words_.items()[number * kWordsABlock]);
  }

  std::atomic<uint64_t> writes{0}, written_bytes{0}, flushes{0}, trimmed_blocks{0};
  std::atomic<int> flush_ms{0}, read_ms{0};
  blockdev::WriteTag last_tag{};
  std::vector<PStreamId> released;  // by one thread
  std::function<void()> on_write, on_trim, on_measure;
  std::function<void(BlockNo, uint64_t)> on_trim_of;
  std::function<Result<void>()> on_flush;
  blockdev::IdleMeans idle_means = blockdev::IdleMeans::kNone;
  uint64_t by_itself_ms_max = 0;
  std::atomic<uint64_t> idle_begun{0}, idle_ended{0};
  std::function<Result<blockdev::IdleWork>(const blockdev::IdleLimits&)> on_idle;

 private:
  static constexpr uint64_t kWordsABlock = kBlockSize / sizeof(uint64_t);
  using Block = std::array<uint64_t, kWordsABlock>;

  // Stores each word by itself: a device may be read while it is being written (device.h). This is
  // no race of the device, and it orders nothing, so that races of the callers are found. A builtin
  // does it, as std::atomic_ref is calls where nothing is optimized.
  void fill(BlockNo first, ConstBytes bytes) {
    uint64_t* to = &words_.items()[first.value * kWordsABlock];
    for (uint64_t done = 0; done < bytes.size(); done += kBlockSize) {
      Block block;
      std::memcpy(block.data(), &bytes[done], kBlockSize);
      for (const uint64_t word : block) __atomic_store_n(to++, word, __ATOMIC_RELAXED);
    }
  }
  void copy_out(BlockNo first, Bytes bytes) {
    const uint64_t* from = &words_.items()[first.value * kWordsABlock];
    for (uint64_t done = 0; done < bytes.size(); done += kBlockSize) {
      Block block;
      for (uint64_t& word : block) word = __atomic_load_n(from++, __ATOMIC_RELAXED);
      std::memcpy(&bytes[done], block.data(), kBlockSize);
    }
  }

  blockdev::DeviceInfo info_;
  ZeroedArray<uint64_t> words_;
  std::atomic<uint64_t> blocks_;
  std::mutex tag_mutex_;
};

using BorrowedDevice = blockdev::ForwardingDevice;

}  // namespace streamfs::data
