#include "fuse-fs/blockdev/write_streams.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/nvme/discovery.h"

namespace streamfs::blockdev {
namespace {

// A directive type that NVMe cannot have: its types have four bits.
constexpr uint8_t kWriteStream = 0x10;

// Linux 6.16, include/uapi/linux/io_uring.h: __u8 write_stream, in the union with splice_fd_in,
// which io_uring_init() asserts to be 44. liburing has no field for it yet.
constexpr size_t kStreamAt = 44;
static_assert(offsetof(io_uring_sqe, splice_fd_in) == kStreamAt);

// Returns whether the file has a number.
bool read_number(const std::filesystem::path& file, uint64_t& value) {
  std::ifstream input(file);
  return static_cast<bool>(input >> value);
}

// Linux 6.16 reports 2^32 - 1 whatever the reclaim unit is (it has max() in the place of min()).
uint64_t believable(uint64_t granularity) {
  return granularity % kBlockSize == 0 ? granularity : 0;
}

}  // namespace

WriteStreams write_streams_of(const std::filesystem::path& directory) {
  std::error_code failed;
  if (std::filesystem::exists(directory / "partition", failed))
    return {0, 0, "a partition has no write streams; the whole device may"};
  uint64_t count = 0, granularity = 0;
  if (!read_number(directory / "queue/max_write_streams", count))
    return {0, 0, "this kernel has no write streams (Linux 6.16)"};
  if (count == 0)
    return {0, 0, "the device offers no write streams (an NVMe SSD does with FDP turned on)"};
  if (count == 1) return {0, 0, "the device offers one write stream only"};
  (void)read_number(directory / "queue/write_stream_granularity", granularity);
  constexpr uint64_t kMost =
      std::min<uint64_t>(nvme::kMostPStreams, std::numeric_limits<uint8_t>::max());
  return {static_cast<uint16_t>(std::min(count, kMost)), believable(granularity), {}};
}

void set_write_stream(io_uring_sqe& entry, uint8_t stream) {
  std::memcpy(reinterpret_cast<std::byte*>(&entry) + kStreamAt, &stream, sizeof stream);
}

Placement write_stream_placement(PStreamId stream, uint16_t count) {
  if (stream == kDefaultPStream || stream.value >= count) return {};
  return {kWriteStream, static_cast<uint16_t>(stream.value + 1)};
}

uint8_t write_stream_of(const Placement& placement) {
  return placement.dtype == kWriteStream ? static_cast<uint8_t>(placement.dspec) : uint8_t{0};
}

void StreamEngine::write(uint64_t offset, ConstBytes bytes, uint8_t stream, IoDone done) {
  if (stream != 0 && lost_.load(std::memory_order_relaxed)) {
    plain_(stream, bytes.size());
    stream = 0;
  }
  if (stream == 0) return inner_->write(offset, bytes, 0, std::move(done));
  inner_->write(offset, bytes, stream,
                [this, offset, bytes, stream, done = std::move(done)](Result<void> result) {
                  if (result.ok() || result.error().code != EINVAL) return done(std::move(result));
                  plain_(stream, bytes.size());
                  inner_->write(offset, bytes, 0, [this, done](Result<void> plain) {
                    if (plain.ok()) lost();
                    done(std::move(plain));
                  });
                });
}

void StreamEngine::lost() {
  if (!lost_.exchange(true))
    spdlog::warn("{} refuses write streams that it offered; everything goes to one stream", path_);
}

}  // namespace streamfs::blockdev
