// A stream of page operations made ready for replay: surveyed (how many pages, how many of them
// live at once), prefilled if asked, and annotated with each write's death for policies that need
// the future. Each of the three is a pass over the stream; nothing of the stream stays in memory.
// Clock: host pages written.
// Thread safety: none; one pass at a time. Memory: while surveying 1 bit, while annotating 8 bytes
// a page of the footprint; what the source keeps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/workload/facts.h"
#include "lab/workload/lifetimes.h"
#include "lab/workload/op_source.h"
#include "lab/workload/prefilled.h"
#include "lab/workload/trace_source.h"

namespace streamfs::lab {

// Called now and then with the host pages written so far in this pass, and those there are (0: not
// known yet).
using Progress = std::function<void(uint64_t writes, uint64_t of)>;

class Workload {
 public:
  // Errors: of the source.
  static Result<Workload> survey(std::unique_ptr<OpSource> source, const Progress& progress = {});
  static Result<Workload> load(std::vector<std::string> paths, const LoadOptions& options,
                               const Progress& progress = {});
  // From page operations made by a program: tests.
  static Workload from(std::vector<PageOp> ops, uint32_t footprint_pages);

  // With one write of the first `share` of the pages, in order, before the stream; 0: without.
  // A change forgets annotations.
  void set_prefill(const Prefill& prefill);
  // Finds out when each write dies; does nothing if that is known.
  // Errors: of the source and of LifetimeFile.
  Result<void> annotate(const Progress& progress = {});

  const WorkloadFacts& facts() const { return facts_; }
  uint64_t prefill_writes() const { return prefilled_ ? prefilled_->pages() : 0; }
  // The clock at which this write's page is overwritten or trimmed; kNever, also if not annotated.
  uint64_t death_of(uint64_t write) const {
    return lives_.empty() ? kNever : lives_.death_of(write);
  }

  // One pass: rewind(), then next() until it gives none.
  Result<void> rewind() { return ops().rewind(); }
  Result<std::span<const PageOp>> next() { return ops().next(); }

 private:
  explicit Workload(std::unique_ptr<OpSource> source) : source_(std::move(source)) {}
  OpSource& ops() { return prefilled_ ? *prefilled_ : *source_; }
  Result<StreamFacts> count(const Progress& progress);

  std::unique_ptr<OpSource> source_;
  Prefill prefill_;
  std::unique_ptr<Prefilled> prefilled_;
  StreamFacts bare_;  // of the source alone
  WorkloadFacts facts_;
  LifetimeFile lives_;
};

}  // namespace streamfs::lab
