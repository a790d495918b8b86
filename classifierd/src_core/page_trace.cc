#include "classifierd/src_core/page_trace.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "base/wire/model_table.h"
#include "base/wire/record_check.h"
#include "classifierd/src_core/life_table.h"
#include "learning/write_ages.h"

namespace streamfs::classifier {

using wire::TelemetryKind;
using wire::TelemetryRecord;

namespace {

constexpr uint64_t kAgeBytesMax = 1U << 30;

// The live pages and their ages.
class Contents {
 public:
  Contents(uint64_t end, uint64_t scale_pages)
      : ages_(end, scale_pages, std::min(end, kAgeBytesMax)) {}

  void trim(const TelemetryRecord& record) {
    for (uint32_t i = 0; i < record.pages; ++i) live_.erase(record.block + i);
  }
  // The age class of what the page overwrites.
  uint8_t write(uint64_t block, uint64_t clock) {
    return live_.insert(block).second ? wire::kAgeNew : ages_.age_class(block, clock);
  }
  void wrote(const TelemetryRecord& record) {
    ages_.wrote(record.block, record.pages, record.clock_pages);
  }

 private:
  std::unordered_set<uint64_t> live_;
  learning::WriteAges ages_;
};

void append_runs(const TelemetryRecord& whole, Contents& contents,
                 std::vector<TelemetryRecord>& out) {
  for (uint32_t i = 0; i < whole.pages; ++i) {
    const uint8_t age = contents.write(whole.block + i, whole.clock_pages + i);
    if (i > 0 && age == out.back().age) {
      ++out.back().pages;
      continue;
    }
    TelemetryRecord& run = out.emplace_back(whole);
    run.block += i;
    run.pages = 1;
    run.request_offset += i;
    run.clock_pages += i;
    run.kind = age == wire::kAgeNew ? TelemetryKind::kNew : TelemetryKind::kOverwrite;
    run.age = age;
  }
  contents.wrote(whole);
}

uint64_t end_of(std::span<const TelemetryRecord> records) {
  uint64_t end = 1;
  for (const TelemetryRecord& record : records) {
    if (believable(record, wire::kCapacityBlocksMax))
      end = std::max(end, record.block + record.pages);
  }
  return end;
}

}  // namespace

std::vector<TelemetryRecord> as_telemetry(std::span<const TelemetryRecord> records) {
  std::vector<TelemetryRecord> out;
  Contents contents(end_of(records), PageTrace(records).peak_live());
  uint64_t clock = 0;
  for (TelemetryRecord record : records) {
    if (!believable(record, wire::kCapacityBlocksMax)) continue;
    record.clock_pages = clock;
    if (record.kind == TelemetryKind::kTrim) {
      contents.trim(record);
      out.push_back(record);
      continue;
    }
    append_runs(record, contents, out);
    clock += record.pages;
  }
  return out;
}

std::vector<uint8_t> tags(std::span<const TelemetryRecord> records, learning::Table table,
                          learning::ChunkMap chunks) {
  if (!table.is_sound()) throw std::invalid_argument("table of a wrong size");
  std::vector<uint8_t> out;
  for (const TelemetryRecord& record : records) {
    if (record.kind == TelemetryKind::kTrim || !believable(record, wire::kCapacityBlocksMax))
      continue;
    const std::span<const uint8_t> row = table.row(record.vstream);
    for (uint32_t i = 0; i < record.pages; ++i) {
      const uint32_t shape = wire::shape_of(record.request_pages, record.request_offset + i,
                                            record.age, chunks.of(record.block + i));
      out.push_back(row[shape]);
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
    if (!believable(record, wire::kCapacityBlocksMax)) continue;
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
