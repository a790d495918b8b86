// Recovery: which records of the rings were committed, and making them home.
//
//   scan ──► newest first: committed?  ──► oldest first: apply ──► flush, fence ──► watermark
//
// A record is committed if its own checksum holds and either a committed, younger record proves it
// (its bodies may have changed since) or its bodies' checksum holds too.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/record.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr size_t kLineWords = kLineSize / kWordSize;

struct Found {
  std::vector<uint64_t> words;
  uint64_t sequence = 0;
};

// What scan_rings() found parses.
RecordView view_of(const Found& record) {
  const auto view = RecordView::parse(record.words);
  if (!view) assertion_failed("a scanned record parses", __FILE__, __LINE__);
  return *view;
}

// The words of a whole record at the start of `rest`; none if there is none.
std::span<const uint64_t> record_in(std::span<const uint64_t> rest, uint32_t seed) {
  const auto view = RecordView::parse(rest);
  return view && view->checksum_ok(seed) ? view->words() : std::span<const uint64_t>();
}

// Whole records above the watermark, from every line of every ring where one may begin.
std::vector<Found> scan_rings(const pmem::Region& region, const Geometry& geometry,
                              uint64_t watermark) {
  std::vector<Found> found;
  for (uint32_t number = 0; number < geometry.super().ring_count; ++number) {
    const std::byte* start = region.at(geometry.ring_offset(number));
    const std::span ring(reinterpret_cast<const uint64_t*>(start), kRingSize / kWordSize);
    for (size_t at = 0; at < ring.size();) {
      const uint64_t sequence = ring[at] & kSequenceMask;
      std::span<const uint64_t> record;
      if (sequence > watermark && sequence <= kMaxSequence)
        record = record_in(ring.subspan(at), geometry.super().journal_seed);
      if (!record.empty()) found.push_back({{record.begin(), record.end()}, sequence});
      at += std::max<size_t>(1, div_round_up(record.size_bytes(), kLineSize)) * kLineWords;
    }
  }
  std::ranges::sort(found, {}, &Found::sequence);
  return found;
}

// Keeps the committed ones, in order.
std::vector<Found> committed_of(std::vector<Found> found, const pmem::Region& region,
                                const Geometry& geometry) {
  std::unordered_set<uint64_t> proved;
  std::vector<Found> committed;
  for (auto record = found.rbegin(); record != found.rend(); ++record) {
    const RecordView view = view_of(*record);
    const bool whole = proved.contains(record->sequence) ||
                       view.body_checksum(region, geometry) == view.header().body_checksum;
    if (!whole) continue;
    proved.insert(view.proofs().begin(), view.proofs().end());
    committed.push_back(std::move(*record));
  }
  std::ranges::reverse(committed);
  return committed;
}

Result<void> make_home(pmem::Region& region, const Geometry& geometry,
                       const std::vector<Found>& committed) {
  for (const Found& record : committed) {
    if (!view_of(record).in_bounds(geometry)) {
      return Error{EIO, "journal record " + std::to_string(record.sequence) +
                            " points outside the metadata it may change"};
    }
  }
  std::vector<uint64_t> lines;
  for (const Found& record : committed) {
    const RecordView view = view_of(record);
    view.apply(region, geometry);
    view.home_lines(geometry, lines);
  }
  for (const uint64_t line : lines) region.flush(line, kLineSize);
  region.fence();
  return {};
}

}  // namespace

Result<Recovery> recover_journal(pmem::Region& region, const Geometry& geometry) {
  const uint64_t watermark = region.load(kWatermarkOffset);
  if (watermark > kMaxSequence) return Error{EIO, "the journal's watermark is damaged"};
  std::vector<Found> found = scan_rings(region, geometry, watermark);
  Recovery result{found.size(), 0, watermark};
  if (found.empty()) return result;
  // Past every record seen, committed or not: a torn one must never be taken up later.
  result.last_sequence = found.back().sequence;
  const std::vector<Found> committed = committed_of(std::move(found), region, geometry);
  SFS_TRY(make_home(region, geometry, committed));
  result.records_replayed = committed.size();
  region.store_word(kWatermarkOffset, result.last_sequence);
  region.flush(kWatermarkOffset, kWordSize);
  region.fence();
  return result;
}

}  // namespace streamfs::meta
