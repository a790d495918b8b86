// The kernel's write streams: each io_uring write to a block device may name a stream (Linux 6.16).
// NVMe devices with FDP on have them; stream n is placement handle n - 1 there. A write that names
// no stream (0) goes to handle 0.
//
// A stream takes effect only with direct I/O on a block device that is no partition. Older kernels,
// regular files and the page cache ignore it silently, so streams are used only if /sys announces
// them. A stream that the device does not have is refused with EINVAL. F_SET_RW_HINT is no
// substitute: it applies to the inode, not to a write, and some kernels do not pass it to the
// device.
// Thread safety: pure functions over /sys; StreamEngine as IoEngine.
#pragma once

#include <liburing.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/io_engine.h"

namespace streamfs::blockdev {

struct WriteStreams {
  uint16_t count = 0;              // 0, or at least 2
  uint64_t granularity_bytes = 0;  // the unit that a stream fills on the device; 0: unknown
  std::string why;                 // if count is 0, the reason
};

// Reads queue/max_write_streams and queue/write_stream_granularity in a block device's directory of
// /sys.
WriteStreams write_streams_of(const std::filesystem::path& directory);

// Sets the stream of a prepared write; 0 is none.
void set_write_stream(io_uring_sqe& entry, uint8_t stream);

// Returns the placement of a pStream on a device with `count` streams. pStream s names stream s + 1
// and so uses handle s, if s is 1 to count - 1. pStream 0 (the default) and all from `count` on
// name no stream, and such writes use handle 0. Nothing names stream 1, which is handle 0 as well.
Placement write_stream_placement(PStreamId stream, uint16_t count);
// Returns the stream that a placement names; 0 for placements of another kind.
uint8_t write_stream_of(const Placement& placement);

// An engine that sends a write again without a stream if the device refuses it with EINVAL, because
// a device may lose its streams while it is open. After the first such success it logs a warning
// and sends all later writes without a stream.
class StreamEngine final : public IoEngine {
 public:
  // `plain` is called for each write that names a stream, right before it is sent without.
  using Plain = std::function<void(uint8_t stream, uint64_t bytes)>;
  StreamEngine(std::unique_ptr<IoEngine> inner, std::string path, Plain plain)
      : path_(std::move(path)), plain_(std::move(plain)), inner_(std::move(inner)) {}
  const char* name() const override { return inner_->name(); }
  bool takes_streams() const override { return !lost_ && inner_->takes_streams(); }
  void write(uint64_t offset, ConstBytes bytes, uint8_t stream, IoDone done) override;
  void read(uint64_t offset, Bytes bytes, IoDone done) override {
    inner_->read(offset, bytes, std::move(done));
  }
  Result<void> fdatasync() override { return inner_->fdatasync(); }

 private:
  void lost();

  const std::string path_;
  const Plain plain_;
  std::atomic<bool> lost_{false};
  // Destroyed first, because its destructor may run completions that use the members above.
  const std::unique_ptr<IoEngine> inner_;
};

}  // namespace streamfs::blockdev
