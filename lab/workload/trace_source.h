// Reads traces as one stream of page operations, one trace after the other on one device.
// Writes and reads widen to whole pages, trims shrink. Consecutive writes with the same request
// number (not 0) are pieces of one request, up to 4096 of them; each read or trim is a request. A
// trim or read yields operations only for pages written earlier in the pass.
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
  bool reads = false;         // whether to include reads, which have no effect on placement
  uint64_t device_bytes = 0;  // unless 0, a record that ends beyond it is an error
  uint64_t max_writes = 0;    // pages; unless 0, the record that reaches it ends the stream
};

class TraceSource final : public OpSource {
 public:
  // Errors: those of TraceReader::open() for the first trace; EINVAL for an empty list.
  static Result<std::unique_ptr<TraceSource>> open(std::vector<std::string> paths,
                                                   const LoadOptions& options);

  // Errors: those of the trace reader; EINVAL for a record beyond the device or below offset 0, or
  // more than 16 TiB of different pages.
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
  ssd::PageNumbers numbers_;  // rewind() keeps them

  size_t path_ = 0;
  std::unique_ptr<trace::TraceReader> reader_;
  Piece ahead_{};
  bool have_ahead_ = false;
  uint64_t writes_ = 0;
  uint32_t seen_ = 0;  // pages with a number below this were written in this pass

  std::vector<Piece> request_;  // the pieces of the current request
  uint64_t request_pages_ = 0;
  size_t piece_ = 0;       // index in request_ of the next page's piece
  uint64_t in_piece_ = 0;  // place of the next page in that piece
  uint64_t place_ = 0;     // place of the next page in the request
  std::vector<ssd::PageNumbers::Numbered> known_;
  std::vector<PageOp> batch_;
};

}  // namespace streamfs::lab
