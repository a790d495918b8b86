// A device that fails on purpose, around another device: for tests.
//
// Faults: after `fail_writes_after` more writes every write fails with EIO. A failing write does
// not reach the device; with `tear_failing_writes` its first half does, and all of it does with
// `failing_writes_arrive`. Reads and flushes likewise fail after `fail_reads_after` and
// `fail_flushes_after`. At most `failures` calls fail, of all three kinds together. With
// `lose_on_failed_flush`, which needs `volatile_cache`, a failing flush drops unflushed writes as a
// power cut does, and the device stays on.
//
// Storm: requests fail at random, each in a way that real devices have. Flushes never do.
//
// Power: with `volatile_cache`, writes and trims since the last flush are kept in memory here. A
// block then has several versions: the flushed one, and one for each write or trim since. A
// power_cut() keeps one of them at random. For one block in four it chooses anew for each sector of
// 512 bytes. Every state that device.h allows can result. After a cut, reads, writes, trims and
// flushes fail with EIO until power_on(), which also clears what set_faults() has set.
//
// Thread safety: as device.h.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "base/mutex.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"

namespace streamfs::blockdev {

struct Faults {
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  uint64_t fail_writes_after = kNever;
  uint64_t fail_reads_after = kNever;
  uint64_t fail_flushes_after = kNever;
  uint64_t failures = kNever;
  bool tear_failing_writes = false;
  bool failing_writes_arrive = false;
  bool lose_on_failed_flush = false;
};

struct Storm {
  enum Kind : uint8_t {
    kWriteError,    // EIO; nothing, half or all of it arrived
    kNoSpace,       // ENOSPC, as of exhausted thin provisioning; so do up to 7 later writes
    kWriteRefused,  // EAGAIN; nothing arrived
    kReadError,     // EIO; half of the buffer was filled
    kTrimError,     // EIO; nothing happened
    kStuck,         // answered late, without an error
    kKinds,
  };
  static constexpr std::array<const char*, kKinds> kNames = {
      "write errors", "no space", "refused writes", "read errors", "trim errors", "stuck"};

  uint64_t seed = 1;
  uint32_t one_in = 0;       // one in so many requests is hit; 0: none
  uint64_t first_block = 0;  // requests before this block are spared
  // Called in the thread of the request that is hit, without a lock.
  std::function<void(Kind)> on_fault;
};

class FaultyDevice final : public ForwardingDevice {
 public:
  FaultyDevice(std::unique_ptr<Device> inner, bool volatile_cache);

  void set_faults(const Faults& faults);
  void set_storm(Storm storm);
  // The same seed gives the same content.
  void power_cut(uint64_t seed);
  void power_on();
  Device& inner() { return *inner_; }
  // Return the calls of write() and of flush(), and the calls that failed because of set_faults().
  uint64_t writes() const { return writes_; }
  uint64_t flushes() const { return flushes_; }
  uint64_t failed() const { return failed_; }

  const DeviceInfo& info() const override { return info_; }
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override;
  void read(BlockNo first, Bytes bytes, Completion done) override;
  Result<void> flush() override;
  Result<void> trim(BlockNo first, uint64_t count) override;

 private:
  using Block = std::array<std::byte, kBlockSize>;
  struct Version {
    Block content;
    WriteTag tag;
    bool trimmed = false;
  };

  bool due(uint64_t& countdown) SFS_REQUIRES(mutex_);
  void lose_unflushed(uint64_t seed) SFS_REQUIRES(mutex_);
  // Draws whether the storm hits a request, and with which of `kinds`; `chance` is for the details.
  std::optional<Storm::Kind> struck(BlockNo first, std::initializer_list<Storm::Kind> kinds,
                                    uint64_t& chance);
  Result<void> write_through(BlockNo first, ConstBytes bytes, WriteTag tag) SFS_REQUIRES(mutex_);
  void cache(BlockNo first, ConstBytes bytes, WriteTag tag) SFS_REQUIRES(mutex_);
  Result<void> write_back() SFS_REQUIRES(mutex_);
  void choose_content(uint64_t block, const std::vector<Version>& versions, uint64_t choice);

  std::unique_ptr<Device> inner_;
  DeviceInfo info_;
  const bool volatile_cache_;
  Mutex mutex_;  // held across the inner device's calls: a test device
  Faults faults_ SFS_GUARDED_BY(mutex_);
  std::atomic<uint64_t> writes_{0}, flushes_{0}, failed_{0};
  Mutex storm_mutex_;  // leaf
  Storm storm_ SFS_GUARDED_BY(storm_mutex_);
  std::mt19937_64 weather_ SFS_GUARDED_BY(storm_mutex_);
  int writes_without_space_ SFS_GUARDED_BY(storm_mutex_) = 0;
  bool off_ SFS_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, std::vector<Version>> unflushed_ SFS_GUARDED_BY(mutex_);  // by block
};

}  // namespace streamfs::blockdev
