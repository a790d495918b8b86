// The placement model, which the learning daemon publishes and the filesystem evaluates on the
// write path. It has two parts, and `serves` names the one that places data: a table (vStream,
// shape) → pStream, or a logistic model whose classes of lifetime have pStreams
// (learning/placement_model.h).
//
// A page's shape is its place in the request, the age of the data it overwrites, and the class of
// its chunk: the learning daemon groups the chunks of DATA by how often their data is overwritten.
//
// Layout of the shared memory (a memfd, sealed against shrinking): ModelHeader, then two
// ModelBuffers. Generation g is in buffer g % 2. The learning daemon fills the buffer that `active`
// does not name, sets its checksum and then stores its generation in `active` with release order.
// If the daemon dies before that store, the last model stays active. The filesystem copies the
// buffer into memory of its own, checks it and only then uses it: the write path never reads shared
// memory. A model that fails any check is refused and logged; the last good one serves on. `kind`
// names the model for people and decides nothing; it may be empty.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace streamfs::wire {

inline constexpr uint32_t kModelVersion = 4;

// End class: a page's distance from the end of its request (0, 1, or 2 and more); requests of one
// and of two pages have classes of their own. Age class: 0 if the page overwrites nothing; 1 to 4
// if it overwrites data written less than 1/64, 1/16, 1/4 or all of the capacity ago; kAgeOld if
// the data is older or its age unknown.
inline constexpr uint32_t kEndClasses = 6;
inline constexpr uint8_t kAgeNew = 0, kAgeOld = 5;
inline constexpr uint32_t kAgeClasses = kAgeOld + 1;
// Chunk class: 0 if nothing is known of the chunk, else its group.
inline constexpr uint32_t kChunkPages = 256;
inline constexpr uint32_t kChunkClasses = 9;
inline constexpr uint32_t kShapes = kAgeClasses * kEndClasses * kChunkClasses;

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
constexpr uint32_t shape_of(uint32_t request_pages, uint32_t offset, uint8_t age,
                            uint8_t chunk_class = 0) {
  return end_class(request_pages, offset) + (age + chunk_class * kAgeClasses) * kEndClasses;
}

inline constexpr uint32_t kModelVStreams = 65536;
inline constexpr uint32_t kModelTableRows = 4096;  // at most
inline constexpr uint32_t kModelEntries = kModelTableRows * kShapes;
inline constexpr uint32_t kModelChunks = 1U << 20;  // later chunks have class 0
inline constexpr uint32_t kModelKindBytes = 24;
inline constexpr uint32_t kModelClasses = 128;    // at most
inline constexpr uint32_t kModelRows = 1U << 17;  // of weights
inline constexpr uint32_t kModelLandmarks = 16;   // weights a row

enum class ModelServes : uint32_t { kTable = 0, kLogistic = 1 };

struct ModelBuffer {
  uint64_t generation;
  uint32_t pstream_count;      // every pStream below is less than this
  uint32_t checksum;           // CRC32C of all bytes from `serves` on
  uint64_t clock_pages;        // device clock up to which the model has learned
  char kind[kModelKindBytes];  // lower-case letters, digits and '-', padded with NULs
  ModelServes serves;
  uint32_t classes;     // of the logistic model, 1 to kModelClasses
  uint32_t table_rows;  // 1 to kModelTableRows
  uint32_t reserved;
  uint64_t live_pages;              // of its landmarks (learning/landmarks.h); 1 or more
  float edges[kModelClasses];       // classes - 1 lower bounds, ascending, on the landmarks' axis
  uint8_t pstreams[kModelClasses];  // of each class
  uint16_t row_of[kModelVStreams];  // 0: the row of vStreams that have none of their own
  uint8_t entries[kModelEntries];   // the table: [row * kShapes + shape]
  // Expected lifetimes, a feature of the logistic model: half_log2 plus one, 0 if unknown
  // (learning/steps.h). [row * kShapes + shape]
  uint8_t expected[kModelEntries];
  int8_t weights[kModelRows][kModelLandmarks];  // in 32nds
  uint8_t chunks[kModelChunks];                 // the class of each chunk
};
static_assert(sizeof(ModelBuffer) == 72 + 5 * kModelClasses + 2 * kModelVStreams +
                                         2 * kModelEntries + kModelRows * kModelLandmarks +
                                         kModelChunks);
static_assert(offsetof(ModelBuffer, serves) == 48);

// Returns the bytes that the checksum covers.
inline std::span<const std::byte> summed(const ModelBuffer& model) {
  return std::as_bytes(std::span(&model, 1)).subspan(offsetof(ModelBuffer, serves));
}

struct ModelHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t buffer_size;
  uint8_t uuid[16];
  std::atomic<uint64_t> active;     // generation; 0 = nothing published yet
  std::atomic<uint64_t> heartbeat;  // of the learning daemon, ms; for people
  uint64_t reserved[2];
};
static_assert(sizeof(ModelHeader) == 64);
inline constexpr uint64_t kModelBytes = sizeof(ModelHeader) + 2 * sizeof(ModelBuffer);

}  // namespace streamfs::wire
