#include "lab/workload/trace_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"
#include "trace/trace.h"

namespace streamfs::lab {
namespace {

constexpr size_t kMaxPieces = 4096;

uint32_t narrowed(uint64_t pages) {
  return static_cast<uint32_t>(std::min<uint64_t>(pages, UINT32_MAX));
}

}  // namespace

Result<std::unique_ptr<TraceSource>> TraceSource::open(std::vector<std::string> paths,
                                                       const LoadOptions& options) {
  if (paths.empty()) return Error{EINVAL, "no trace"};
  std::unique_ptr<TraceSource> source(new TraceSource(std::move(paths), options));
  SFS_TRY(source->rewind());
  return source;
}

Result<void> TraceSource::rewind() {
  path_ = 0;
  have_ahead_ = false;
  writes_ = 0;
  seen_ = 0;
  request_.clear();
  piece_ = 0;
  SFS_ASSIGN(reader_, trace::TraceReader::open(paths_[0]));
  return {};
}

Result<uint64_t> TraceSource::shifted(const trace::TraceRecord& record) const {
  const auto offset = static_cast<int64_t>(record.offset);  // at most 2^62, says the reader
  int64_t moved = 0;
  if (__builtin_add_overflow(offset, options_.shift_bytes, &moved) || moved < 0)
    return reader_->complain(
        fmt::format("offset {} with a shift of {} is no offset", offset, options_.shift_bytes));
  const auto first = static_cast<uint64_t>(moved);
  if (options_.device_bytes != 0 &&
      (first > options_.device_bytes || record.length > options_.device_bytes - first))
    return reader_->complain(fmt::format("offset {} + length {} lies beyond the device's {} bytes",
                                         first, record.length, options_.device_bytes));
  return first;
}

// Reads a piece into ahead_. Returns false at the end of the last trace.
Result<bool> TraceSource::read_piece() {
  if (options_.max_writes != 0 && writes_ >= options_.max_writes) return false;
  for (trace::TraceRecord record;;) {
    SFS_ASSIGN(const bool more, reader_->next(record));
    if (!more) {
      if (path_ + 1 == paths_.size()) return false;
      SFS_ASSIGN(reader_, trace::TraceReader::open(paths_[path_ + 1]));
      ++path_;
      continue;
    }
    const bool is_trim = record.op == trace::TraceOp::kTrim;
    if (is_trim && options_.ignore_trims) continue;
    if (record.op == trace::TraceOp::kRead && !options_.reads) continue;
    SFS_ASSIGN(const uint64_t offset, shifted(record));
    const uint64_t end = offset + record.length;
    const uint64_t first =
        is_trim ? div_round_up(offset, ssd::kPageBytes) : offset / ssd::kPageBytes;
    const uint64_t last = is_trim ? end / ssd::kPageBytes : div_round_up(end, ssd::kPageBytes);
    if (last <= first) continue;  // a trim of less than a page
    ahead_ = {first,          last - first,   record.context, record.request,
              record.vstream, record.pstream, record.op};
    have_ahead_ = true;
    return true;
  }
}

Result<bool> TraceSource::read_request() {
  request_.clear();
  request_pages_ = piece_ = in_piece_ = place_ = 0;
  if (!have_ahead_) {
    SFS_ASSIGN(const bool more, read_piece());
    if (!more) return false;
  }
  do {
    request_.push_back(ahead_);
    request_pages_ += ahead_.pages;
    if (ahead_.op == trace::TraceOp::kWrite) writes_ += ahead_.pages;
    have_ahead_ = false;
    SFS_ASSIGN(const bool more, read_piece());
    if (!more) break;
  } while (ahead_.request != 0 && ahead_.request == request_[0].request &&
           ahead_.op == trace::TraceOp::kWrite && request_[0].op == trace::TraceOp::kWrite &&
           request_.size() < kMaxPieces);
  return true;
}

// Emits a trim or a read of those of its pages that were written.
void TraceSource::emit_known(OpKind kind) {
  const Piece& piece = request_[0];
  known_.clear();
  numbers_.known(piece.first, piece.first + piece.pages, known_);
  for (const auto [page, number] : known_) {
    if (number >= seen_) continue;
    batch_.push_back({.page = number,
                      .address = static_cast<uint32_t>(page),
                      .request_first = static_cast<uint32_t>(piece.first),
                      .request_pages = narrowed(piece.pages),
                      .context = piece.context,
                      .vstream = piece.vstream,
                      .pstream = piece.pstream,
                      .kind = kind});
  }
  piece_ = 1;
}

Result<void> TraceSource::emit_writes() {
  while (batch_.size() < kBatchOps && piece_ < request_.size()) {
    const Piece& piece = request_[piece_];
    const uint64_t page = piece.first + in_piece_;
    const ssd::Lpn number = numbers_.number(page);
    if (number == ssd::kNoPage) return Error{EINVAL, paths_[path_] + ": more than 16 TiB of pages"};
    seen_ = std::max(seen_, number + 1);
    const auto address = static_cast<uint32_t>(page);
    batch_.push_back({.page = number,
                      .address = address,
                      .request_first = address - static_cast<uint32_t>(place_++),
                      .request_pages = narrowed(request_pages_),
                      .context = piece.context,
                      .vstream = piece.vstream,
                      .pstream = piece.pstream});
    if (++in_piece_ < piece.pages) continue;
    in_piece_ = 0;
    ++piece_;
  }
  return {};
}

Result<std::span<const PageOp>> TraceSource::next() {
  batch_.clear();
  while (batch_.size() < kBatchOps) {
    if (piece_ == request_.size()) {
      SFS_ASSIGN(const bool more, read_request());
      if (!more) break;
    }
    if (request_[0].op == trace::TraceOp::kWrite)
      SFS_TRY(emit_writes());
    else
      emit_known(request_[0].op == trace::TraceOp::kTrim ? OpKind::kTrim : OpKind::kRead);
  }
  return std::span<const PageOp>(batch_);
}

}  // namespace streamfs::lab
