#include "lab/replay/workload.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "lab/workload/lifetimes.h"
#include "lab/workload/op_source.h"
#include "lab/workload/prefilled.h"
#include "lab/workload/trace_source.h"
#include "lab/workload/vector_source.h"

namespace streamfs::lab {

Result<Workload> Workload::survey(std::unique_ptr<OpSource> source, const Progress& progress) {
  Workload workload(std::move(source));
  if (const auto known = workload.source_->facts()) {
    workload.bare_ = *known;
  } else {
    SFS_ASSIGN(workload.bare_, workload.count(progress));
  }
  static_cast<StreamFacts&>(workload.facts_) = workload.bare_;
  return workload;
}

Result<Workload> Workload::load(std::vector<std::string> paths, const LoadOptions& options,
                                const Progress& progress) {
  SFS_ASSIGN(std::unique_ptr<TraceSource> source, TraceSource::open(std::move(paths), options));
  return survey(std::move(source), progress);
}

Workload Workload::from(std::vector<PageOp> ops, uint32_t footprint_pages) {
  Result<Workload> workload = survey(std::make_unique<VectorSource>(std::move(ops)));
  SFS_ASSERT(workload.ok() && workload->bare_.footprint_pages <= footprint_pages);
  workload->bare_.footprint_pages = workload->facts_.footprint_pages = footprint_pages;
  return std::move(workload).value();
}

Result<StreamFacts> Workload::count(const Progress& progress) {
  StreamFacts facts;
  std::vector<bool> live_pages;
  uint64_t live = 0;
  SFS_TRY(source_->rewind());
  for (;;) {
    SFS_ASSIGN(const std::span<const PageOp> batch, source_->next());
    if (batch.empty()) break;
    for (const PageOp& op : batch) {
      if (op.kind != OpKind::kWrite && op.kind != OpKind::kTrim) continue;
      if (op.page >= live_pages.size())
        live_pages.resize(std::max<size_t>(op.page + size_t{1}, 2 * live_pages.size()));
      const bool is_write = op.kind == OpKind::kWrite;
      if (is_write) {
        ++facts.writes;
        facts.footprint_pages = std::max(facts.footprint_pages, op.page + 1);
      }
      if (live_pages[op.page] == is_write) continue;
      live_pages[op.page] = is_write;
      live = is_write ? live + 1 : live - 1;
      facts.peak_live_pages = std::max(facts.peak_live_pages, live);
    }
    if (progress) progress(facts.writes, 0);
  }
  return facts;
}

void Workload::set_prefill(const Prefill& prefill) {
  if (prefill == prefill_) return;
  prefill_ = prefill;
  prefilled_ = prefill.share > 0 ? std::make_unique<Prefilled>(*source_, bare_, prefill) : nullptr;
  static_cast<StreamFacts&>(facts_) = ops().facts().value_or(bare_);
  facts_.lifetimes = {};
  lives_ = {};
}

Result<void> Workload::annotate(const Progress& progress) {
  if (!lives_.empty() || facts_.writes == 0) return {};
  SFS_ASSIGN(LifetimeFile lives, LifetimeFile::create(facts_.writes));
  LifetimeHistogram histogram;
  std::vector<uint64_t> written_at(facts_.footprint_pages, kNever);
  uint64_t clock = 0;
  SFS_TRY(rewind());
  for (;;) {
    SFS_ASSIGN(const std::span<const PageOp> batch, next());
    if (batch.empty()) break;
    for (const PageOp& op : batch) {
      if (op.kind != OpKind::kWrite && op.kind != OpKind::kTrim) continue;
      if (uint64_t& write = written_at[op.page]; write != kNever) {
        lives.set(write, clock - write);
        histogram.add(clock - write);
        write = kNever;
      }
      if (op.kind == OpKind::kWrite) written_at[op.page] = clock++;
    }
    if (progress) progress(clock, facts_.writes);
  }
  SFS_ASSERT(clock == facts_.writes);
  histogram.add(kNever, clock - histogram.total());
  facts_.lifetimes = std::move(histogram);
  lives_ = std::move(lives);
  return {};
}

}  // namespace streamfs::lab
