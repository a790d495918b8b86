// What the host says and what the firmware keeps of streams on an eMMC (Vishwakarma 2019, section
// 4). Thread safety: values and pure functions.
#pragma once

#include <cstdint>

#include "ssd/ftl/router.h"

namespace streamfs::ssd::emmc {

// Of SET_BLOCK_COUNT's argument: bits 25 to 28 are the context id, or the stream's. 0: neither.
constexpr uint8_t context_id_of(uint32_t cmd23_argument) {
  return cmd23_argument >> 25 & 0xf;
}
constexpr uint32_t cmd23_argument(uint16_t blocks, uint8_t context_id) {
  return blocks | uint32_t{context_id & 0xfu} << 25;
}

inline constexpr uint8_t kExtCsdStreams = 133;  // its byte: are context ids streams? 0 or 1
inline constexpr uint16_t kStreams = 4;   // ids 1 to 4; the RAM and the buffers suffice for those
inline constexpr double kFillMost = 0.9;  // of the logical pages; above it there are no streams

// Which open block host data goes to. Active blocks eat spare: so on a full device there are none
// but the default one, and the worst case stays what it was.
class StreamSwitch {
 public:
  explicit StreamSwitch(uint64_t user_pages) : user_pages_(user_pages) {}

  void set(bool streams) { on_ = streams; }  // EXT_CSD byte 133
  bool enabled() const { return on_; }
  bool on(uint64_t live_pages) const {
    return on_ && static_cast<double>(live_pages) <= kFillMost * static_cast<double>(user_pages_);
  }
  // Ids that the device has no block for are data without a stream.
  FrontierId frontier(uint8_t context_id, uint64_t live_pages) const {
    return context_id <= kStreams && on(live_pages) ? context_id : FrontierId{0};
  }

 private:
  uint64_t user_pages_;
  bool on_ = true;
};

}  // namespace streamfs::ssd::emmc
