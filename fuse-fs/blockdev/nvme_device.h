// An NVMe namespace as the data device, driven by NVMe commands: each write names its stream (DTYPE
// 1) or its placement identifier (DTYPE 2).
//
// FDP is used if it is on. Otherwise Streams are enabled and allocated, and released at the end.
// With neither there is one pStream. Requests are split at the largest transfer that controller and
// kernel take. flush() does nothing on a device without a volatile write cache. trim() is Dataset
// Management, deallocate, of the whole units inside the range (nvme/trim.h). A trimmed block reads
// as the device chooses; a device that cannot deallocate ignores trims. release() releases a
// stream's identifier, or moves a placement handle to another reclaim unit (handle update).
//
// Retries: an I/O command that a controller refuses for a transient state is sent again up to five
// times, after growing pauses. An I/O command that a reset cancels, or that finds no path, is sent
// again for up to half a minute; that time is counted once for the controller, not for each
// command. If the last try fails in one of these ways, the error is EIO. Admin commands are not
// retried here.
//
// A controller reset disables Streams, and writes that name a stream are then refused. Such a write
// is sent again without a stream (and counts on pStream 0), and the next write takes streams again.
// If the controller gives fewer, the pStreams beyond that number are written without a stream. A
// device that is open for reading takes no streams.
//
// Thread safety and crashes: see device.h; a completion may run in the controller's thread.
// Statistics are counted since open. The bytes written to the medium are the device's own figure,
// for the whole endurance group.
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
  // The number of times a command was sent, and the time of the first.
  struct Sends {
    int count = 1;
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    Sends next() const { return {count + 1, begun}; }
  };
  // Errors: those of nvme::discover(); EROFS for a write-protected namespace unless read_only.
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

  // Idle time sets the non-operational power state permissive mode, if the controller has it: NVMe
  // has no command to collect garbage. end_idle() and the destructor clear it again if begin_idle()
  // set it.
  IdleCapabilities capabilities() const override;
  Result<IdleWork> begin_idle(const IdleLimits& limits) override;
  Result<void> end_idle() override;

  // Returns the discovery at open; its `streams` are those after Streams were enabled.
  const nvme::Discovery& found() const { return found_; }
  uint64_t max_transfer_bytes() const { return max_transfer_bytes_; }  // of one command
  nvme::Controller& controller() { return *controller_; }
  // Asks the device whether it uses placements: it may accept one without using it. Returns whether
  // each pStream written so far is an open stream, or has a handle whose reclaim unit has another
  // amount left than at open. The answer may be a wrong `false` after release() of a stream, or if
  // a whole number of reclaim units was written. Returns nothing before any write to a pStream
  // other than the default one. Errors: the controller's.
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
  // Sends an I/O command and waits for it. Requires: not called in a completion.
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
  // The time at which the first command that was cut off since the controller's last answer was
  // first sent; max() if none was cut off.
  std::atomic<std::chrono::steady_clock::time_point> cut_off_since_{
      std::chrono::steady_clock::time_point::max()};
  std::atomic<bool> streams_lost_{false};
  std::atomic<uint16_t> streams_held_{0};  // identifiers 1 to this are allocated
  Mutex taking_;  // held over the admin commands that take streams again; writers only try it
  int times_refused_ SFS_GUARDED_BY(taking_) = 0;  // failed attempts since streams were lost
  bool permitted_ = false;                         // begin_idle() set permissive mode
  std::atomic<uint64_t> written_bytes_{0}, read_bytes_{0}, trimmed_bytes_{0}, flushes_{0};
  std::array<std::atomic<uint64_t>, nvme::kMostPStreams> stream_bytes_{};
  // stream_bytes_ at the last update of the pStream's handle.
  std::array<std::atomic<uint64_t>, nvme::kMostPStreams> updated_at_{};
  // Destroyed first, because its destructor may run completions that use the members above.
  const std::unique_ptr<nvme::Controller> controller_;
};

}  // namespace streamfs::blockdev
