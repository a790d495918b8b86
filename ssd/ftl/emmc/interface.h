// The host's stream commands to an eMMC and the firmware's stream switch (Vishwakarma 2019, section
// 4). Thread safety: values and pure functions.
#pragma once

#include <cstdint>

#include "ssd/ftl/router.h"

namespace streamfs::ssd::emmc {

// Returns bits 25 to 28 of SET_BLOCK_COUNT's argument: the context id or the stream id; 0: none.
constexpr uint8_t context_id_of(uint32_t cmd23_argument) {
  return cmd23_argument >> 25 & 0xf;
}
constexpr uint32_t cmd23_argument(uint16_t blocks, uint8_t context_id) {
  return blocks | uint32_t{context_id & 0xfu} << 25;
}

inline constexpr uint8_t kExtCsdStreams = 133;  // index of the byte: 1 if context ids are streams
inline constexpr uint16_t kStreams = 4;         // ids 1 to 4, limited by RAM and buffers
inline constexpr double kFillMost = 0.9;        // share of live pages above which streams are off

// Chooses the open block for host data. The open block of each stream takes flash from the spare.
// While the device is almost full, it therefore uses the default open block (frontier 0) only, and
// its worst case is that of a device without streams.
class StreamSwitch {
 public:
  explicit StreamSwitch(uint64_t user_pages) : user_pages_(user_pages) {}

  void set(bool streams) { on_ = streams; }  // EXT_CSD byte 133
  bool enabled() const { return on_; }
  bool on(uint64_t live_pages) const {
    return on_ && static_cast<double>(live_pages) <= kFillMost * static_cast<double>(user_pages_);
  }
  // An id above kStreams counts as the default stream.
  FrontierId frontier(uint8_t context_id, uint64_t live_pages) const {
    return context_id <= kStreams && on(live_pages) ? context_id : FrontierId{0};
  }

 private:
  uint64_t user_pages_;
  bool on_ = true;
};

}  // namespace streamfs::ssd::emmc
