// The model table: (vStream, shape) → pStream, published by the daemon, read on the write path.
//
// A page's shape is its place in the request and the age of the data it overwrites.
// Layout of the shared memory (a memfd, sealed against shrinking): ModelHeader, then two
// ModelBuffers. The daemon fills the buffer that `active` does not name, sets its fields and
// checksum, then stores `active` = generation with release order; buffer = generation % 2.
// The filesystem checks magic, version, uuid, size, checksum and every entry < pstream_count,
// copies the buffer into memory of its own and only then uses it: the write path never reads shared
// memory. A table that fails any check is refused and logged; the last good one serves on. `kind`
// names the daemon's model for people and decides nothing; it may be empty.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace streamfs::wire {

inline constexpr uint32_t kModelVersion = 2;

// End class: a page's distance from the end of its request (0, 1, or 2 and more); requests of one
// and of two pages have classes of their own. Age class: 0 if the page overwrites nothing; 1 to 4
// if it overwrites data written less than 1/64, 1/16, 1/4 or all of the capacity ago; kAgeOld if
// the data is older or its age unknown.
inline constexpr uint32_t kEndClasses = 6;
inline constexpr uint8_t kAgeNew = 0, kAgeOld = 5;
inline constexpr uint32_t kAgeClasses = kAgeOld + 1;
inline constexpr uint32_t kShapes = kAgeClasses * kEndClasses;
inline constexpr uint32_t kShapeStride = 40;  // entries per vStream in the table

constexpr uint32_t end_class(uint32_t request_pages, uint32_t offset) {
  if (request_pages <= 1) return 0;
  const uint32_t to_end = request_pages - 1 - std::min(offset, request_pages - 1);
  if (request_pages == 2) return 1 + to_end;  // 1: last of two, 2: first of two
  return 3 + std::min<uint32_t>(to_end, 2);   // 3: last, 4: last but one, 5: earlier
}
// Returns the age class, 1 to kAgeOld, of overwritten data. `age` is in the unit of `capacity`.
constexpr uint8_t age_class(uint64_t age, uint64_t capacity) {
  uint8_t found = 1;
  for (uint64_t part = 64; part > 0 && age >= capacity / part; part /= 4) ++found;
  return found;
}
constexpr uint32_t shape_of(uint32_t request_pages, uint32_t offset, uint8_t age) {
  return end_class(request_pages, offset) + age * kEndClasses;
}

inline constexpr uint32_t kModelVStreams = 65536;
inline constexpr uint32_t kModelEntries = kModelVStreams * kShapeStride;
inline constexpr uint32_t kModelKindBytes = 24;

struct ModelBuffer {
  uint64_t generation;
  uint32_t pstream_count;      // every entry is below this
  uint32_t checksum;           // CRC32C of entries
  uint64_t clock_pages;        // device clock up to which the model has learned
  char kind[kModelKindBytes];  // lower-case letters, digits and '-', padded with NULs
  uint64_t reserved[2];
  uint8_t entries[kModelEntries];  // [vstream * kShapeStride + shape]
};
static_assert(sizeof(ModelBuffer) == 64 + kModelEntries);

struct ModelHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t buffer_size;
  uint8_t uuid[16];
  std::atomic<uint64_t> active;     // generation; 0 = nothing published yet
  std::atomic<uint64_t> heartbeat;  // of the daemon, ms; for people
  uint64_t reserved[2];
};
static_assert(sizeof(ModelHeader) == 64);
inline constexpr uint64_t kModelBytes = sizeof(ModelHeader) + 2 * sizeof(ModelBuffer);

}  // namespace streamfs::wire
