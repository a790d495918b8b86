// The shape of an emulated SSD, and the checks that make an impossible one an error.
// Thread safety: values and pure functions. Crash: nothing here is persistent by itself.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::emulator {

using Lpn = uint32_t;         // logical page (4 KiB), what the host addresses
using Ppn = uint32_t;         // physical page: block × pages_per_block + place in the block
using BlockIndex = uint32_t;  // erase block: a superblock over all dies

inline constexpr uint32_t kNoPage = UINT32_MAX;
inline constexpr uint32_t kNoBlock = UINT32_MAX;
inline constexpr uint64_t kPageBytes = kBlockSize;
inline constexpr uint16_t kMaxStreams = 128;
inline constexpr uint32_t kReserveBlocks = 12;  // beside the spare the user asked for
inline constexpr size_t kPendingErases = 4;     // that may wait for pages still in the buffer
inline constexpr uint32_t kWordlinePages = 16;  // programmed at once: 16 KiB × 4 planes

// Where garbage collection puts a page that a host write had put on stream s.
enum class GcMode : uint8_t {
  kSameStream = 0,   // back to the open block of s
  kOwnFrontier = 1,  // the open block of s for copies
  kShared = 2,       // one open block for the copies of all streams ("initially isolated" FDP)
};

struct Geometry {
  uint32_t user_pages = 0;
  uint32_t pages_per_block = 256;
  uint32_t blocks = 0;     // physical, spare and reserve included
  uint16_t streams = 1;    // pStreams, the default included
  uint16_t low_water = 2;  // free blocks at or below which GC runs
  GcMode gc_mode = GcMode::kOwnFrontier;
  bool plp = true;  // power-loss protected: a flush is free and pads nothing

  uint32_t frontiers() const { return uint32_t{streams} * 2; }
  uint64_t physical_pages() const { return uint64_t{blocks} * pages_per_block; }
};

struct GeometryRequest {
  uint64_t user_bytes = 0;
  double spare = 0.07;  // spare ÷ user
  uint32_t streams = 8;
  uint32_t pages_per_block = 0;  // 0: chosen from the size
  bool plp = true;
  GcMode gc_mode = GcMode::kOwnFrontier;
};

// EINVAL with the reason for a device that cannot exist or could not collect its garbage.
Result<Geometry> plan_geometry(const GeometryRequest& request);

// The same checks for a geometry read from an image.
Result<void> check_geometry(const Geometry& geometry);

}  // namespace streamfs::emulator
