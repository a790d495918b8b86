// The log of global contexts (Vishwakarma 2019, section 4). A context is the state that the
// firmware needs to continue after a power cut, written to NAND at intervals: the active blocks'
// records, the state of every block, and the chunks of the map that changed since the previous
// context.
//
// The log has two halves of flash. Contexts follow each other in one half, each in its own pages
// with a generation and a checksum; the first of a half has all of the map. When a half is full,
// the other is erased and begun. A cut before its first context is whole leaves the old half valid.
// Thread safety: none. After a crash: recover() finds the last whole context.
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

// Active blocks of the default stream, of the other streams, and of garbage collection.
using ActiveBlocks = std::array<ActiveBlock, kStreams + 2>;
inline constexpr uint32_t kChunkEntries = 1024;  // map entries in a chunk: 4 KiB

struct Context {
  ActiveBlocks active;
  ScanBase base;  // append() writes its location in chunks
};

class ContextLog {
 public:
  // `faults` may be null.
  ContextLog(Image& image, NandFaults* faults);

  // Returns the last whole context; none if the log has none. The next append() begins the other
  // half, because torn pages may follow the context.
  std::optional<Context> recover();
  // Writes a context with the dirty chunks of base.location, or with all chunks at the start of a
  // half. Returns false after a power cut, also inside this call. An error of the image file counts
  // as a power cut.
  bool append(const Context& context, std::span<const uint32_t> dirty_chunks);

 private:
  struct Entry {
    uint64_t generation = 0;
    std::vector<std::byte> bytes;
    uint64_t end = 0;  // the page after it
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
  uint64_t next_page_ = 0;   // 0: the next context begins a half
  uint64_t generation_ = 0;  // of the last context
  bool powered_ = true;
};

}  // namespace streamfs::ssd::emmc
