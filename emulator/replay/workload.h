// A trace made ready for replay: page by page, pages numbered by first appearance, and each write
// annotated with the time of its death. Reads are dropped. Clock: host pages written.
// Thread safety: const after load. Memory: 12 bytes a page written or trimmed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "emulator/geometry.h"

namespace streamfs::emulator {

struct PageWrite {
  Lpn page;
  uint32_t index;  // of the write: 0, 1, 2, ...
  uint16_t pstream;
};

struct PageOp {
  Lpn page;
  uint16_t pstream;
  bool is_trim;
};

struct LoadOptions {
  int64_t shift_bytes = 0;  // added to every offset
  bool ignore_trims = false;
  uint64_t device_bytes = 0;  // 0: any offset; else offsets beyond are an error
  uint64_t max_writes = 0;    // 0: all of the trace
};

class Workload {
 public:
  static constexpr uint32_t kNever = UINT32_MAX;

  // Errors: those of the trace reader; EINVAL for offsets beyond the device or below zero.
  static Result<Workload> load(const std::string& path, const LoadOptions& options);
  // From page operations made by a program: benches and tests.
  static Workload from(std::vector<PageOp> ops, uint32_t footprint_pages);

  // The same, with one write of every page, in order, before it; prefill_writes() of them.
  Workload prefilled() const;
  uint32_t prefill_writes() const { return prefill_writes_; }

  const std::vector<PageOp>& ops() const { return ops_; }
  uint32_t writes() const { return static_cast<uint32_t>(death_.size()); }
  uint32_t footprint_pages() const { return footprint_pages_; }
  uint64_t peak_live_pages() const { return peak_live_pages_; }
  // The clock at which this write's page is overwritten or trimmed; kNever.
  uint32_t death_of(uint32_t write) const { return death_[write]; }
  // Host pages from write to death; UINT64_MAX for never.
  uint64_t life_of(uint32_t write) const {
    return death_[write] == kNever ? UINT64_MAX : death_[write] - write;
  }

 private:
  void annotate();

  std::vector<PageOp> ops_;
  std::vector<uint32_t> death_;
  uint32_t footprint_pages_ = 0;
  uint64_t peak_live_pages_ = 0;
  uint32_t prefill_writes_ = 0;
};

}  // namespace streamfs::emulator
