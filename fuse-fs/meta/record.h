// Parses journal records and applies them. Every count and offset is checked, because a ring is
// media and may hold anything.
// Thread safety: pure functions over their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/home_blocks.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

inline constexpr uint64_t kSequenceMask = (uint64_t{1} << 48) - 1;
// The largest sequence that is believed. A journal does not live to give out more, so a larger one
// is damage.
inline constexpr uint64_t kMaxSequence = kSequenceMask - (uint64_t{1} << 40);
inline constexpr uint32_t kHeaderWords = sizeof(RecordHeader) / kWordSize;

// A checked view of a record's words.
class RecordView {
 public:
  // Returns nullopt unless the lengths of the sections add up to the record's. Offsets are not
  // checked. The view borrows `words`.
  static std::optional<RecordView> parse(std::span<const uint64_t> words);

  TxId sequence() const { return TxId{header_.sequence_words & kSequenceMask}; }
  const RecordHeader& header() const { return header_; }
  std::span<const uint64_t> words() const { return words_; }
  bool checksum_ok(uint32_t seed) const;
  // Returns the CRC32C of the bodies as META holds them now. nullopt: a body lies outside of what a
  // record may change.
  std::optional<uint32_t> body_checksum(const pmem::Region& region, const Geometry& geometry) const;
  std::span<const uint64_t> bodies() const { return bodies_; }
  void add_bodies(HomeBlocks& blocks) const;
  // Returns the heap units that the record gives to an object.
  std::vector<uint64_t> units_taken(const Geometry& geometry) const;
  std::span<const uint64_t> proofs() const { return proofs_; }
  // Returns whether a replay would touch only what a record may change.
  bool in_bounds(const Geometry& geometry) const;
  // Stores the home words. Requires: in_bounds().
  void apply(pmem::Region& region, const Geometry& geometry) const;
  // Appends the offset of each home line that apply() touches, unsorted.
  void home_lines(const Geometry& geometry, std::vector<uint64_t>& lines) const;

 private:
  template <typename Visitor>  // visitor(cell offset, mask, values)
  void each_patch(Visitor&& visitor) const;

  std::span<const uint64_t> words_;
  RecordHeader header_{};
  std::span<const uint64_t> patches_, masks_, runs_, bodies_, proofs_;
};

struct RunView {
  uint64_t first, count;
  RunKind kind;
};
constexpr uint64_t pack_run(uint64_t first, uint64_t count, RunKind kind) {
  return first | count << 40U | static_cast<uint64_t>(kind) << 62U;
}
constexpr RunView unpack_run(uint64_t word) {
  return {word & ((uint64_t{1} << 40) - 1), word >> 40U & kMaxRunBlocks,
          static_cast<RunKind>(word >> 62U)};
}
struct BodyView {
  uint64_t offset, words;
};
constexpr uint64_t pack_body(uint64_t offset, uint64_t words) {
  return offset / kWordSize | words << 48U;
}
constexpr BodyView unpack_body(uint64_t word) {
  return {(word & kSequenceMask) * kWordSize, word >> 48U};
}

uint32_t record_checksum(std::span<const uint64_t> words, uint32_t seed);

}  // namespace streamfs::meta
