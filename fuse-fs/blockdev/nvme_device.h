// A namespace of an NVMe device as the data device, by commands: each write says its stream (DTYPE
// 1) or its placement identifier (DTYPE 2), which block devices cannot.
//
// FDP is preferred where it is on, else Streams are enabled and allocated, and given back at the
// end; with neither there is one pStream. Requests are split at what controller and kernel take in
// one command. flush() does nothing on a device without a volatile write cache. trim() is Dataset
// Management, deallocate, of the whole units inside (nvme/trim.h); what a trimmed block then reads
// as is the device's choice unless it says zeroes (DLFEAT), and a device that cannot deallocate
// ignores trims. What a controller refuses for a state that passes is sent again five times, after
// pauses that become longer, and what a reset cuts off for half a minute, all of it together. A
// pStream that is released gives its stream's resources back, or lets its placement handle go on in
// another reclaim unit (handle update).
//
// A controller reset disables Streams, and writes that name one are then refused. Such a write is
// sent again without one (and counts on pStream 0), so nothing fails, and the next write takes
// streams anew. That a device takes a placement does not show that it heeds it: honoured() looks at
// its handles.
//
// Thread safety and crashes: see device.h; a completion may run in the controller's thread.
// Statistics are counted since open; what the medium was written is the device's own word, for the
// whole endurance group.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/query.h"

namespace streamfs::blockdev {

class NvmeDevice final : public Device {
 public:
  // How often a command was sent, and since when.
  struct Sends {
    int count = 1;
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    Sends next() const { return {count + 1, begun}; }
  };
  // Errors: those of nvme::discover(), EROFS for a namespace that is write protected.
  static Result<std::unique_ptr<NvmeDevice>> open(std::unique_ptr<nvme::Controller> controller,
                                                  const OpenOptions& options);
  ~NvmeDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<void> check_same() override;
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override;
  void read(BlockNo first, Bytes bytes, Completion done) override;
  Result<void> flush() override;
  Result<void> trim(BlockNo first, uint64_t count) override;
  Result<void> release(PStreamId stream) override;
  Result<DeviceStats> stats() override;
  Placement placement(PStreamId stream) const override;

  // Permissive mode, where the controller has it: NVMe knows no command to collect garbage. What it
  // was before is put back by end_idle() and at the end; a reset forgets it.
  IdleCapabilities capabilities() const override;
  Result<IdleWork> begin_idle(const IdleLimits& limits) override;
  Result<void> end_idle() override;

  // As at open; `streams` as they are once enabled.
  const nvme::Discovery& found() const { return found_; }
  uint64_t max_transfer_bytes() const { return max_transfer_bytes_; }  // of one command
  nvme::WafSource waf_source() const { return written_at_open_.source; }
  nvme::Controller& controller() { return *controller_; }
  // Whether what was written to a pStream so far shows at the handle or stream it was sent to;
  // none before any such write, or where the device has none.
  Result<std::optional<bool>> honoured();

 private:
  struct Request;

  NvmeDevice(std::unique_ptr<nvme::Controller> controller, nvme::Discovery found, bool read_only);
  void take_placements();
  void describe();
  Result<void> check(BlockNo first, uint64_t blocks) const;
  bool names_lost_stream(const Placement& placement) const;
  void take_streams_again();
  void take_lost_streams() SFS_REQUIRES(taking_);
  void transfer(BlockNo first, Bytes bytes, const Placement& placement, bool is_write,
                Completion done);
  void start(const std::shared_ptr<Request>& request, const nvme::Command& command, Bytes data,
             Sends sends);
  void pass(const nvme::Command& command, Bytes data, const Sends& sends, nvme::Done done);
  Result<void> update_handle(const Placement& known);
  // An I/O command that the caller waits for: not in a completion.
  Result<uint32_t> send(const nvme::Command& command, Bytes data);
  size_t stream_of(const Placement& placement) const;
  bool is_sent_again(const Result<uint32_t>& result, const Sends& sends);
  void count_on_none(const Placement& placement, uint64_t bytes);
  Result<bool> streams_honoured(const std::vector<uint16_t>& used);
  Result<bool> handles_honoured(const std::vector<uint16_t>& used);

  nvme::Discovery found_;
  const bool read_only_;
  DeviceInfo info_;
  uint64_t lbas_per_block_ = 1;
  uint64_t max_transfer_bytes_ = kBlockSize;
  std::vector<Placement> placements_;  // of each pStream
  nvme::Written written_at_open_;
  // The first command that found no path to the controller, since one was answered.
  std::atomic<std::chrono::steady_clock::time_point> cut_off_since_{
      std::chrono::steady_clock::time_point::max()};
  std::atomic<bool> streams_lost_{false};
  std::atomic<uint16_t> streams_held_{0};  // identifiers 1 to this
  Mutex taking_;  // held by whoever takes streams again, over admin commands
  int times_refused_ SFS_GUARDED_BY(taking_) = 0;  // one after the other, since they were lost
  bool permitted_ = false;  // by us; of whoever calls begin_idle() and end_idle()
  std::atomic<uint64_t> written_bytes_{0}, read_bytes_{0}, trimmed_bytes_{0}, flushes_{0};
  std::array<std::atomic<uint64_t>, nvme::kMostPStreams> stream_bytes_{};
  // What it was when the handle was last told to go on in another reclaim unit.
  std::array<std::atomic<uint64_t>, nvme::kMostPStreams> updated_at_{};
  // Its end may run completions, which use all of the above.
  const std::unique_ptr<nvme::Controller> controller_;
};

}  // namespace streamfs::blockdev
