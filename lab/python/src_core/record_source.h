// Turns telemetry records into the simulator's stream of page operations. Each written page has
// the pStream that the caller chose for it. Records that fail believable() are left out.
// Thread safety: none. Memory: the page numbers. The records, tags and releases outlive this.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/wire/telemetry.h"
#include "lab/workload/op_source.h"
#include "ssd/page_numbers.h"

namespace streamfs::lab::python {

// Releases a stream, which then gets no data for long, before the page write of this number.
struct Release {
  uint64_t write = 0;
  uint8_t stream = 0;
};

class RecordSource final : public lab::OpSource {
 public:
  // `tags` holds one pStream for each page written; pages beyond its end get 0. `releases` are in
  // the order of their writes.
  RecordSource(std::span<const wire::TelemetryRecord> records, std::span<const uint8_t> tags,
               std::span<const Release> releases = {})
      : records_(records), tags_(tags), releases_(releases) {}

  Result<std::span<const lab::PageOp>> next() override;
  Result<void> rewind() override;

 private:
  void trim(const wire::TelemetryRecord& record);
  void write(const wire::TelemetryRecord& record);

  const std::span<const wire::TelemetryRecord> records_;
  const std::span<const uint8_t> tags_;
  const std::span<const Release> releases_;
  ssd::PageNumbers numbers_;  // kept when rewound
  std::vector<ssd::PageNumbers::Numbered> known_;
  std::vector<lab::PageOp> batch_;
  size_t next_ = 0;      // record
  size_t written_ = 0;   // pages
  size_t released_ = 0;  // of releases_
};

}  // namespace streamfs::lab::python
