// Prepares a stream of page operations for replay. A survey counts pages, live pages and writes: a
// pass over the stream, unless the source knows them. A prefill can be put before the stream.
// annotate() is a pass that finds each write's death, for policies that need the future. The stream
// itself is not kept in memory. Clock: host pages written.
// Thread safety: none; one pass at a time. Memory: for each page of the footprint 1 bit during the
// survey, 8 bytes during annotate(); that of the source.
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

// A replay calls it after each batch with the host pages written so far in this pass and in all (0:
// unknown).
using Progress = std::function<void(uint64_t writes, uint64_t of)>;

class Workload {
 public:
  // Errors: those of the source.
  static Result<Workload> survey(std::unique_ptr<OpSource> source, const Progress& progress = {});
  static Result<Workload> load(std::vector<std::string> paths, const LoadOptions& options,
                               const Progress& progress = {});
  // Makes a workload of page operations in memory, for tests. Requires: their pages are below
  // footprint_pages.
  static Workload from(std::vector<PageOp> ops, uint32_t footprint_pages);

  // Sets the prefill (prefilled.h). A change discards the annotation.
  void set_prefill(const Prefill& prefill);
  // Finds when each write dies, by a pass over the stream; does nothing if that is known.
  // Errors: those of the source and of LifetimeFile.
  Result<void> annotate(const Progress& progress = {});

  const WorkloadFacts& facts() const { return facts_; }  // prefill included
  uint64_t prefill_writes() const { return prefilled_ ? prefilled_->pages() : 0; }
  // Returns the clock at which this write's page is overwritten or trimmed; kNever if it is not, or
  // without annotate().
  uint64_t death_of(uint64_t write) const {
    return lives_.empty() ? kNever : lives_.death_of(write);
  }

  // A pass: rewind(), then next() until it returns no operations.
  Result<void> rewind() { return ops().rewind(); }
  Result<std::span<const PageOp>> next() { return ops().next(); }

 private:
  explicit Workload(std::unique_ptr<OpSource> source) : source_(std::move(source)) {}
  OpSource& ops() { return prefilled_ ? *prefilled_ : *source_; }
  Result<StreamFacts> count(const Progress& progress);

  std::unique_ptr<OpSource> source_;
  Prefill prefill_;
  std::unique_ptr<Prefilled> prefilled_;
  StreamFacts bare_;  // of the source, without the prefill
  WorkloadFacts facts_;
  LifetimeFile lives_;
};

}  // namespace streamfs::lab
