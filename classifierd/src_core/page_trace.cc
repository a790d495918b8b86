#include "classifierd/src_core/page_trace.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "base/wire/model_table.h"
#include "classifierd/src_core/life_table.h"
#include "classifierd/src_core/record_check.h"

namespace streamfs::classifier {

using wire::TelemetryKind;
using wire::TelemetryRecord;

namespace {

void append_runs(TelemetryRecord record, std::unordered_set<uint64_t>& live,
                 std::vector<TelemetryRecord>& out) {
  const TelemetryRecord whole = record;
  uint32_t start = 0;
  bool overwrite = false;
  for (uint32_t i = 0; i <= whole.pages; ++i) {
    const bool end = i == whole.pages;
    const bool was_live = !end && !live.insert(whole.block + i).second;
    if (i > 0 && (end || was_live != overwrite)) {
      record.block = whole.block + start;
      record.pages = i - start;
      record.request_offset = whole.request_offset + start;
      record.clock_pages = whole.clock_pages + start;
      record.kind = overwrite ? TelemetryKind::kOverwrite : TelemetryKind::kNew;
      out.push_back(record);
      start = i;
    }
    overwrite = was_live;
  }
}

}  // namespace

std::vector<TelemetryRecord> as_telemetry(std::span<const TelemetryRecord> records) {
  std::vector<TelemetryRecord> out;
  std::unordered_set<uint64_t> live;
  uint64_t clock = 0;
  for (TelemetryRecord record : records) {
    if (!believable(record, kCapacityBlocksMax)) continue;
    record.clock_pages = clock;
    if (record.kind == TelemetryKind::kTrim) {
      for (uint32_t i = 0; i < record.pages; ++i) live.erase(record.block + i);
      out.push_back(record);
      continue;
    }
    append_runs(record, live, out);
    clock += record.pages;
  }
  return out;
}

std::vector<uint8_t> tags(std::span<const TelemetryRecord> records,
                          std::span<const uint8_t> entries) {
  if (entries.size() != wire::kModelEntries) throw std::invalid_argument("table of a wrong size");
  std::vector<uint8_t> out;
  for (const TelemetryRecord& record : records) {
    if (record.kind == TelemetryKind::kTrim || !believable(record, kCapacityBlocksMax)) continue;
    const bool overwrite = record.kind == TelemetryKind::kOverwrite;
    for (uint32_t i = 0; i < record.pages; ++i) {
      const uint32_t shape =
          wire::shape_of(record.request_pages, record.request_offset + i, overwrite);
      out.push_back(entries[cell_of(record.vstream, shape)]);
    }
  }
  return out;
}

PageTrace::PageTrace(std::span<const TelemetryRecord> records) {
  number_pages(records);
  find_lifetimes();
}

void PageTrace::number_pages(std::span<const TelemetryRecord> records) {
  std::unordered_map<uint64_t, uint32_t> numbers;
  for (const TelemetryRecord& record : records) {
    if (!believable(record, kCapacityBlocksMax)) continue;
    const bool trim = record.kind == TelemetryKind::kTrim;
    for (uint32_t i = 0; i < record.pages; ++i) {
      const uint64_t block = record.block + i;
      if (trim && !numbers.contains(block)) continue;
      const auto [place, fresh] = numbers.try_emplace(block, pages_);
      pages_ += fresh ? 1U : 0U;
      steps_.push_back({place->second, trim});
    }
  }
}

void PageTrace::find_lifetimes() {
  std::vector<uint64_t> written(pages_, kImmortal);  // which write the live page is
  uint32_t live = 0;
  for (const Step& step : steps_) {
    uint64_t& birth = written[step.page];
    if (birth != kImmortal) {
      lifetimes_[birth] = lifetimes_.size() - birth;
      birth = kImmortal;
      --live;
    }
    if (step.trim) continue;
    birth = lifetimes_.size();
    lifetimes_.push_back(kImmortal);
    peak_live_ = std::max(peak_live_, ++live);
  }
}

}  // namespace streamfs::classifier
