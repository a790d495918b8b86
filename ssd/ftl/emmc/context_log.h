// The global context (Vishwakarma 2019, section 4): what the firmware needs to go on after a power
// cut, written to NAND now and then. Here: the active blocks' records, the state of every block,
// and those chunks of the map that changed since the context before.
//
// Two halves of flash. Contexts go one behind the other into one of them, each in pages of its own
// with a generation and a checksum; the first of a half has all of the map. When a half is full the
// other one is erased and begun: a cut before its first context is whole leaves the old half good.
// Thread safety: none. Crash: the last whole context counts; recover() finds it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "ssd/ftl/emmc/active_block.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/media/nand_faults.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd::emmc {

// Of the default stream, of the others, of garbage collection.
using ActiveBlocks = std::array<ActiveBlock, kStreams + 2>;
inline constexpr uint32_t kChunkEntries = 1024;  // of the map, 4 KiB

struct Context {
  ActiveBlocks active;
  ScanBase base;  // its location is read by whoever writes it, chunk by chunk
};

class ContextLog {
 public:
  // `faults` may be none.
  ContextLog(Image& image, NandFaults* faults);

  // None: there never was a whole one. Contexts go on behind what is found.
  std::optional<Context> recover();
  // Writes a context with the dirty chunks of base.location, or with all. False once the power is
  // gone, inside it too.
  bool append(const Context& context, std::span<const uint32_t> dirty_chunks);

  uint64_t pages_written() const { return pages_written_; }
  uint64_t contexts_written() const { return generation_; }

 private:
  struct Entry {
    uint64_t generation = 0;
    std::vector<std::byte> bytes;
    uint64_t end = 0;  // the page behind it
  };
  std::optional<Entry> read_entry(uint64_t page, uint64_t end) const;
  std::optional<Context> read_half(uint32_t half, uint64_t& generation, uint64_t& end) const;
  std::vector<std::byte> pack(const Context& context, std::span<const uint32_t> chunks) const;
  bool apply(const Entry& entry, Context& context) const;
  bool erase_half(uint32_t half);
  bool program(uint64_t page, Bytes bytes);
  uint64_t half_begin(uint32_t half) const {
    return geometry_.physical_pages() + half * half_pages_;
  }

  Image& image_;
  NandFaults* const faults_;
  const Geometry geometry_;
  const uint64_t half_pages_;
  const uint32_t chunks_;
  uint32_t half_ = 0;
  uint64_t next_page_ = 0;   // 0: the next one begins a half
  uint64_t generation_ = 0;  // of the last one
  uint64_t pages_written_ = 0;
  bool powered_ = true;
};

}  // namespace streamfs::ssd::emmc
