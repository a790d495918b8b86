// The filesystems that fuzz targets damage: small, with something of every kind in them, made once
// by mkfs and a script of operations. A run works on their words in place, through a ScratchRegion
// that puts back what it changed, so that it costs what it touches. Before and after the words lie
// addresses that nobody may read: what reads outside META stops, under any sanitizer or none.
//
// Thread safety: none; made at the first use.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/geometry.h"
#include "pmem/recording_region.h"

namespace streamfs::fuzz {

class FixedClock final : public Clock {
 public:
  Timestamp now() override { return {1'700'000'000, 7}; }
  uint64_t monotonic_ms() override { return 1'700'000'000'000; }
};

// Zeroed words between the two.
class GuardedWords {
 public:
  explicit GuardedWords(uint64_t bytes);  // whole pages
  GuardedWords(GuardedWords&& other) noexcept;
  ~GuardedWords();
  std::span<uint64_t> get() const { return words_; }

 private:
  std::span<uint64_t> words_;
};

struct Image {
  GuardedWords words;
  meta::Geometry geometry;
  std::unique_ptr<pmem::ScratchRegion> region;
  std::vector<uint64_t> live;  // META offsets of the words that are not zero
};

inline constexpr uint64_t kMetaBytes = 1024 * 1024;
inline constexpr uint64_t kDataBlocks = 2048;
inline constexpr uint8_t kImages = 4;
inline constexpr uint8_t kIntentImage = 3;

// Returns the region's content, guarded, and the places of its live words.
Image finish_image(const pmem::Region& region, const meta::Geometry& geometry);

// A region that a run's end puts back.
class Run {
 public:
  explicit Run(pmem::ScratchRegion& region) : region_(region) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() { region_.put_back(); }

 private:
  pmem::ScratchRegion& region_;
};

// 0: closed; 1: the power went, the rings hold what is not home; 2: closed, with the heap and its
// map in several segments; 3: the power went, and an intent log has entries that count and others
// that expired.
Image& image(uint8_t choice);

// Writes and commits whole blocks, as the data floor would: overwrites in place, reserves what is
// new. Errors are the engine's.
Result<void> write_blocks(meta::Engine& engine, InodeId id, uint64_t first, uint64_t count);

// Fills holes with blocks and commits them as unwritten extents. Errors are the engine's.
Result<void> preallocate(meta::Engine& engine, InodeId id, uint64_t first, uint64_t count);

// Something of every kind that META can hold. Stops the process on an error: the engine is sound.
void populate(meta::Engine& engine);

}  // namespace streamfs::fuzz
