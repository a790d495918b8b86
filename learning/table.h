// A table of bytes by (vStream, shape), and the classes of chunks, as base/wire/model_table.h lays
// them out. Both are views: the caller keeps the memory.
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/wire/model_table.h"

namespace streamfs::learning {

struct ChunkMap {
  std::span<const uint8_t> classes;  // by chunk; empty: all chunks have class 0

  uint8_t of(uint64_t page) const {
    const uint64_t chunk = page / wire::kChunkPages;
    return chunk < classes.size() ? classes[chunk] : uint8_t{0};
  }
};

struct Table {
  std::span<const uint16_t> row_of;  // by vStream
  std::span<const uint8_t> rows;     // [row * wire::kShapes + shape]

  // Returns whether every vStream has a row in `rows`, and `rows` is whole rows.
  bool is_sound() const {
    if (row_of.size() != wire::kModelVStreams || rows.empty() || rows.size() % wire::kShapes != 0)
      return false;
    for (const uint16_t row : row_of)
      if (row >= rows.size() / wire::kShapes) return false;
    return true;
  }
  // Returns the bytes of a vStream by shape; an empty span if `rows` is empty. Requires: `rows` is
  // empty or is_sound().
  std::span<const uint8_t> row(uint16_t vstream) const {
    if (rows.empty()) return {};
    return rows.subspan(size_t{row_of[vstream]} * wire::kShapes, wire::kShapes);
  }
};

}  // namespace streamfs::learning
