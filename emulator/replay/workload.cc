#include "emulator/replay/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "emulator/geometry.h"
#include "emulator/trace/trace.h"

namespace streamfs::emulator {
namespace {

struct PageRange {
  uint64_t first, end;
};

// Writes widen to whole pages, trims shrink.
PageRange pages_of(const TraceRecord& record, uint64_t offset) {
  const uint64_t end = offset + record.length;
  if (record.op == TraceOp::kTrim) {
    const uint64_t first = div_round_up(offset, kPageBytes);
    return {first, std::max(first, end / kPageBytes)};
  }
  return {offset / kPageBytes, div_round_up(end, kPageBytes)};
}

Result<uint64_t> shifted(const TraceRecord& record, const LoadOptions& options) {
  const auto offset = static_cast<int64_t>(record.offset);
  if (options.shift_bytes < 0 && offset < -options.shift_bytes)
    return Error{EINVAL, fmt::format("offset {} is below zero after the shift", offset)};
  const auto moved = static_cast<uint64_t>(offset + options.shift_bytes);
  if (options.device_bytes != 0 && moved + record.length > options.device_bytes)
    return Error{EINVAL, fmt::format("offset {} + {} lies beyond the device's {} bytes", moved,
                                     record.length, options.device_bytes)};
  return moved;
}

// Pages get numbers in the order of their first appearance.
class PageNumbers {
 public:
  Lpn number(uint64_t page) {
    return numbers_.try_emplace(page, static_cast<Lpn>(numbers_.size())).first->second;
  }
  const Lpn* find(uint64_t page) const {
    const auto known = numbers_.find(page);
    return known == numbers_.end() ? nullptr : &known->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<uint64_t, Lpn> numbers_;
};

// A trim of pages never written says nothing; a long one is not walked page by page for nothing.
void append_trim(const PageRange& range, const PageNumbers& numbers, std::vector<PageOp>& ops) {
  for (uint64_t page = range.first; page < range.end; ++page)
    if (const Lpn* known = numbers.find(page)) ops.push_back({*known, 0, true});
}

}  // namespace

Result<Workload> Workload::load(const std::string& path, const LoadOptions& options) {
  SFS_ASSIGN(const std::unique_ptr<TraceReader> reader, TraceReader::open(path));
  Workload workload;
  PageNumbers numbers;
  uint64_t writes = 0;
  for (TraceRecord record;;) {
    SFS_ASSIGN(const bool more, reader->next(record));
    if (!more || (options.max_writes != 0 && writes >= options.max_writes)) break;
    if (record.op == TraceOp::kRead) continue;
    SFS_ASSIGN(const uint64_t offset, shifted(record, options));
    const PageRange range = pages_of(record, offset);
    if (record.op == TraceOp::kTrim) {
      if (!options.ignore_trims) append_trim(range, numbers, workload.ops_);
      continue;
    }
    for (uint64_t page = range.first; page < range.end; ++page)
      workload.ops_.push_back({numbers.number(page), record.pstream, false});
    writes += range.end - range.first;
    if (writes >= kNever) return Error{EINVAL, path + ": more than 16 TiB of writes"};
  }
  workload.footprint_pages_ = static_cast<uint32_t>(numbers.size());
  workload.annotate();
  return workload;
}

Workload Workload::from(std::vector<PageOp> ops, uint32_t footprint_pages) {
  Workload workload;
  workload.ops_ = std::move(ops);
  workload.footprint_pages_ = footprint_pages;
  workload.annotate();
  return workload;
}

Workload Workload::prefilled() const {
  std::vector<PageOp> ops;
  ops.reserve(ops_.size() + footprint_pages_);
  for (Lpn page = 0; page < footprint_pages_; ++page) ops.push_back({page, 0, false});
  ops.insert(ops.end(), ops_.begin(), ops_.end());
  Workload workload = from(std::move(ops), footprint_pages_);
  workload.prefill_writes_ = footprint_pages_;
  return workload;
}

void Workload::annotate() {
  std::vector<uint32_t> alive(footprint_pages_, kNever);  // by page: the write it holds
  uint64_t live = 0;
  for (const PageOp& op : ops_) {
    const auto clock = static_cast<uint32_t>(death_.size());
    if (alive[op.page] != kNever) {
      death_[alive[op.page]] = clock;
      --live;
    }
    alive[op.page] = op.is_trim ? kNever : clock;
    if (op.is_trim) continue;
    death_.push_back(kNever);
    peak_live_pages_ = std::max(peak_live_pages_, ++live);
  }
}

}  // namespace streamfs::emulator
