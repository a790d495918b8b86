// A device that fails on purpose, around one that does not: for tests.
//
// Errors: after `fail_writes_after` more writes every write fails with EIO, having reached the
// device not at all or, with `tear_failing_writes`, in its first half; likewise reads and flushes.
// Power: with `volatile_cache`, writes and trims since the last flush live here only. power_cut()
// decides for every 512-byte sector of every such block which of its versions since that flush,
// or the one before, is on the device; so every state that device.h allows can come up. After a cut
// every call fails with EIO until power_on().
//
// Thread safety: as device.h.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "fuse-fs/blockdev/device.h"

namespace streamfs::blockdev {

struct Faults {
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  uint64_t fail_writes_after = kNever;
  uint64_t fail_reads_after = kNever;
  uint64_t fail_flushes_after = kNever;
  bool tear_failing_writes = false;
};

class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::unique_ptr<Device> inner, bool volatile_cache);

  void set_faults(const Faults& faults);
  // The same seed gives the same device.
  void power_cut(uint64_t seed);
  void power_on();
  Device& inner() { return *inner_; }

  const DeviceInfo& info() const override { return info_; }
  Result<uint64_t> measure() override { return inner_->measure(); }
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override;
  void read(BlockNo first, Bytes bytes, Completion done) override;
  Result<void> flush() override;
  Result<void> trim(BlockNo first, uint64_t count) override;
  Result<DeviceStats> stats() override { return inner_->stats(); }
  Placement placement(PStreamId stream) const override { return inner_->placement(stream); }

 private:
  using Block = std::array<std::byte, kBlockSize>;
  struct Version {
    Block content;
    WriteTag tag;
    bool trimmed = false;
  };

  static bool due(uint64_t& countdown);
  void cache(BlockNo first, ConstBytes bytes, WriteTag tag) SFS_REQUIRES(mutex_);
  Result<void> write_back() SFS_REQUIRES(mutex_);
  void settle(uint64_t block, const std::vector<Version>& versions, uint64_t choice);

  std::unique_ptr<Device> inner_;
  DeviceInfo info_;
  const bool volatile_cache_;
  Mutex mutex_;  // held across the inner device's calls: a test device
  Faults faults_ SFS_GUARDED_BY(mutex_);
  bool off_ SFS_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, std::vector<Version>> unflushed_ SFS_GUARDED_BY(mutex_);  // by block
};

}  // namespace streamfs::blockdev
