// The kernel's write streams: a block device that says how many it has takes one with each write of
// io_uring (Linux 6.16). NVMe devices with FDP on are such; stream n there is placement handle n
// - 1.
//
// A stream is heeded only by direct I/O on a whole block device: kernels without them, regular
// files and the page cache ignore it in silence, so what is not said in /sys is not used. A stream
// that the device does not have is refused with EINVAL. A hint (F_SET_RW_HINT) is no substitute: it
// is the inode's, the same for every write, and older kernels do not pass it to the device.
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
  uint16_t count = 0;              // none, or at least two
  uint64_t granularity_bytes = 0;  // what a stream fills before it goes on elsewhere; 0: not told
  std::string why;                 // a sentence where there are none
};

// Of a block device's directory in /sys: queue/max_write_streams, queue/write_stream_granularity.
WriteStreams write_streams_of(const std::filesystem::path& directory);

// Names the stream of a write that is prepared otherwise; 0 is none.
void set_write_stream(io_uring_sqe& entry, uint8_t stream);

// pStream s is stream s + 1; the first is left to the device, which takes its first handle.
Placement write_stream_placement(PStreamId stream, uint16_t count);
// 0 for placements of another kind.
uint8_t write_stream_of(const Placement& placement);

// Sends a write that is refused for its stream again without one, so that nothing fails for a
// label: a device may have lost its streams since it was opened. Once that helped, no write names a
// stream any more, and it is logged.
class StreamEngine final : public IoEngine {
 public:
  // `plain` is told of each write that went without the stream it named.
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
  // Its end may run completions, which use all of the above.
  const std::unique_ptr<IoEngine> inner_;
};

}  // namespace streamfs::blockdev
