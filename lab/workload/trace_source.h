// Traces as a stream of page operations, one trace after the other on one device.
// Writes and reads widen to whole pages, trims shrink. Neighbouring records with the same
// request number (not 0) are pieces of one request. A trim or a read of pages that were never
// written says nothing.
// Thread safety: none. Memory: the page numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/workload/op_source.h"
#include "ssd/page_numbers.h"
#include "trace/trace.h"

namespace streamfs::lab {

struct LoadOptions {
  int64_t shift_bytes = 0;  // added to every offset
  bool ignore_trims = false;
  bool reads = false;         // else they are left out: they do not place
  uint64_t device_bytes = 0;  // 0: any offset; else offsets beyond are an error
  uint64_t max_writes = 0;    // 0: all; else the stream ends with the request that reaches it
};

class TraceSource final : public OpSource {
 public:
  // Errors: those of the trace reader, for the first trace; EINVAL without any.
  static Result<std::unique_ptr<TraceSource>> open(std::vector<std::string> paths,
                                                   const LoadOptions& options);

  // Errors: those of the trace reader; EINVAL for offsets beyond the device or below zero.
  Result<std::span<const PageOp>> next() override;
  Result<void> rewind() override;

 private:
  struct Piece {
    uint64_t first, pages;  // in pages of the host's device
    uint32_t context, request;
    uint16_t vstream, pstream;
    trace::TraceOp op;
  };

  TraceSource(std::vector<std::string> paths, const LoadOptions& options)
      : paths_(std::move(paths)), options_(options) {}
  Result<bool> read_piece();
  Result<uint64_t> shifted(const trace::TraceRecord& record) const;
  Result<bool> read_request();
  void emit_known(OpKind kind);
  Result<void> emit_writes();

  const std::vector<std::string> paths_;
  const LoadOptions options_;
  ssd::PageNumbers numbers_;  // kept when rewound

  size_t path_ = 0;
  std::unique_ptr<trace::TraceReader> reader_;
  Piece ahead_{};
  bool have_ahead_ = false;
  uint64_t writes_ = 0;
  uint32_t seen_ = 0;  // pages with a number below this one were written in this pass

  std::vector<Piece> request_;  // its pieces
  uint64_t request_pages_ = 0;
  size_t piece_ = 0;       // the next page to give is this piece's
  uint64_t in_piece_ = 0;  // and this one of it
  uint64_t place_ = 0;     // and this one of the request
  std::vector<ssd::PageNumbers::Numbered> known_;
  std::vector<PageOp> batch_;
};

}  // namespace streamfs::lab
