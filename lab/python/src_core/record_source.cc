#include "lab/python/src_core/record_source.h"

#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/wire/record_check.h"
#include "base/wire/telemetry.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab::python {

using lab::OpKind;
using lab::PageOp;
using wire::TelemetryRecord;

Result<std::span<const PageOp>> RecordSource::next() {
  batch_.clear();
  for (; next_ < records_.size() && batch_.size() < lab::kBatchOps; ++next_) {
    const TelemetryRecord& record = records_[next_];
    if (!believable(record, wire::kCapacityBlocksMax)) continue;
    record.kind == wire::TelemetryKind::kTrim ? trim(record) : write(record);
  }
  return std::span<const PageOp>(batch_);
}

Result<void> RecordSource::rewind() {
  next_ = written_ = released_ = 0;
  return {};
}

void RecordSource::trim(const TelemetryRecord& record) {
  known_.clear();
  numbers_.known(record.block, record.block + record.pages, known_);
  for (const auto [page, number] : known_) {
    batch_.push_back({.page = number,
                      .address = static_cast<uint32_t>(page),
                      .request_first = static_cast<uint32_t>(record.block),
                      .request_pages = record.pages,
                      .vstream = record.vstream,
                      .kind = OpKind::kTrim});
  }
}

void RecordSource::write(const TelemetryRecord& record) {
  for (uint32_t i = 0; i < record.pages; ++i) {
    const uint64_t block = record.block + i;
    for (; released_ < releases_.size() && releases_[released_].write <= written_; ++released_) {
      batch_.push_back({.pstream = releases_[released_].stream, .kind = OpKind::kRelease});
    }
    const uint8_t tag = written_ < tags_.size() ? tags_[written_] : uint8_t{0};
    ++written_;
    batch_.push_back({.page = numbers_.number(block),
                      .address = static_cast<uint32_t>(block),
                      .request_first = static_cast<uint32_t>(record.block - record.request_offset),
                      .request_pages = record.request_pages,
                      .vstream = record.vstream,
                      .pstream = tag});
  }
}

}  // namespace streamfs::lab::python
