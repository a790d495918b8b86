// Checks telemetry records. Shared memory and traces are input: readers skip a record that is not
// believable, whoever produced it. Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "base/wire/model_table.h"
#include "base/wire/telemetry.h"

namespace streamfs::wire {

inline constexpr uint32_t kRunPagesMax = 1U << 16;          // of a write; requests are 1 MiB today
inline constexpr uint64_t kCapacityBlocksMax = 1ULL << 34;  // 64 TiB of 4 KiB blocks
inline constexpr uint32_t kPStreamsMax = 256;

// Returns whether the run lies within `capacity_blocks` and its fields agree with each other.
inline bool believable(const TelemetryRecord& record, uint64_t capacity_blocks) {
  if (record.kind > TelemetryKind::kTrim) return false;
  if (record.age > kAgeOld) return false;
  if ((record.kind == TelemetryKind::kOverwrite) != (record.age != kAgeNew)) {
    return false;
  }
  if (record.pages == 0 || record.pages > capacity_blocks) return false;
  if (record.block > capacity_blocks - record.pages) return false;
  if (record.kind == TelemetryKind::kTrim) return true;
  if (record.pages > kRunPagesMax || record.pstream >= kPStreamsMax) return false;
  return record.request_pages >= record.pages &&
         record.request_offset <= record.request_pages - record.pages;
}

}  // namespace streamfs::wire
