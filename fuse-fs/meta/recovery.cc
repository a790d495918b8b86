// Recovery: finds the records of the rings that were committed, and makes them home.
//
//   scan each copy ──► newest first: committed? ──► give each copy what it lacks, fence ──►
//   oldest first: apply ──► flush, fence ──► watermark
//
// A record is committed if its own checksum holds and either a committed, younger record proves it
// (its bodies may have changed since) or its bodies' checksum holds too.
//
// If META is kept twice, each of the two checksums may hold in either copy. Home words change only
// in copies that hold the record and its bodies durably, so that each of them alone can finish what
// a second crash interrupts.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
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
#include "pmem/flushed.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr size_t kLineWords = kLineSize / kWordSize;

struct Found {
  std::vector<uint64_t> words;
  uint64_t sequence = 0;
  uint64_t offset = 0;         // in META
  std::vector<size_t> absent;  // copies in which it is torn or missing
};

// Requires: scan_rings() has found the record, so it parses.
RecordView view_of(const Found& record) {
  const auto view = RecordView::parse(record.words);
  if (!view) assertion_failed("a scanned record parses", __FILE__, __LINE__);
  return *view;
}

// Returns the words of a whole record at the start of `rest`. Empty: there is none.
std::span<const uint64_t> record_in(std::span<const uint64_t> rest, uint32_t seed) {
  const auto view = RecordView::parse(rest);
  return view && view->checksum_ok(seed) ? view->words() : std::span<const uint64_t>();
}

// Returns the whole records above the watermark. A record may begin at any line of a ring.
std::vector<Found> scan_rings(const pmem::Region& region, const Geometry& geometry,
                              uint64_t watermark) {
  std::vector<Found> found;
  for (uint32_t number = 0; number < geometry.super().ring_count; ++number) {
    const uint64_t start = geometry.ring_offset(number);
    const std::span ring(reinterpret_cast<const uint64_t*>(region.at(start)),
                         kRingSize / kWordSize);
    for (size_t at = 0; at < ring.size();) {
      const uint64_t sequence = ring[at] & kSequenceMask;
      std::span<const uint64_t> record;
      if (sequence > watermark && sequence <= kMaxSequence)
        record = record_in(ring.subspan(at), geometry.super().journal_seed);
      if (!record.empty())
        found.push_back({{record.begin(), record.end()}, sequence, start + at * kWordSize, {}});
      at += std::max<size_t>(1, div_round_up(record.size_bytes(), kLineSize)) * kLineWords;
    }
  }
  std::ranges::sort(found, {}, &Found::sequence);
  return found;
}

// Returns the records that any copy holds whole, each with the copies that do not.
std::vector<Found> scan_copies(const pmem::Region& region, const Geometry& geometry,
                               uint64_t watermark) {
  std::vector<Found> all = scan_rings(region.copy(0), geometry, watermark);
  for (size_t copy = 1; copy < region.copies(); ++copy) {
    std::vector<Found> here = scan_rings(region.copy(copy), geometry, watermark);
    const auto lacks = [](const std::vector<Found>& list, uint64_t sequence) {
      const auto at = std::ranges::lower_bound(list, sequence, {}, &Found::sequence);
      return at == list.end() || at->sequence != sequence;
    };
    for (Found& record : all) {
      if (lacks(here, record.sequence)) record.absent.push_back(copy);
    }
    std::erase_if(here, [&](const Found& record) { return !lacks(all, record.sequence); });
    for (Found& record : here) {
      for (size_t earlier = 0; earlier < copy; ++earlier) record.absent.push_back(earlier);
    }
    all.insert(all.end(), here.begin(), here.end());
    std::ranges::sort(all, {}, &Found::sequence);
  }
  return all;
}

// A committed record, and the copy that has its bodies. nullopt: the record is proved, so every
// copy had the bodies when it was acknowledged.
struct Committed {
  Found record;
  std::optional<size_t> bodies_of;
};

// Returns the first copy that has these bodies whole.
std::optional<size_t> whole_bodies(const RecordView& view, const pmem::Region& region,
                                   const Geometry& geometry) {
  for (size_t copy = 0; copy < region.copies(); ++copy) {
    if (view.body_checksum(region.copy(copy), geometry) == view.header().body_checksum) return copy;
  }
  return std::nullopt;
}

// Returns the committed records, in order.
std::vector<Committed> committed_of(std::vector<Found> found, const pmem::Region& region,
                                    const Geometry& geometry) {
  std::unordered_set<uint64_t> proved;
  std::vector<Committed> committed;
  for (auto record = found.rbegin(); record != found.rend(); ++record) {
    const RecordView view = view_of(*record);
    std::optional<size_t> bodies_of;
    if (!proved.contains(record->sequence)) {
      bodies_of = whole_bodies(view, region, geometry);
      if (!bodies_of) continue;
    }
    proved.insert(view.proofs().begin(), view.proofs().end());
    committed.push_back({std::move(*record), bodies_of});
  }
  std::ranges::reverse(committed);
  return committed;
}

Result<void> check_bounds(const Geometry& geometry, const std::vector<Committed>& committed) {
  for (const auto& [record, bodies_of] : committed) {
    if (!view_of(record).in_bounds(geometry)) {
      return Error{EIO, "journal record " + std::to_string(record.sequence) +
                            " points outside the metadata it may change"};
    }
  }
  return {};
}

pmem::Flushed store_record(pmem::Region& region, const Found& record) {
  region.store(record.offset, record.words);
  return region.flush(record.offset, record.words.size() * kWordSize);
}

// Gives each copy the records and bodies that it lacks. Returns how many records that were.
uint64_t complete_copies(pmem::Region& region, const std::vector<Committed>& committed) {
  uint64_t completed = 0;
  pmem::Flushed flushed;
  for (const Committed& each : committed) {
    const Found& record = each.record;
    const std::optional<size_t> bodies_of = each.bodies_of;
    bool lacked = !record.absent.empty();
    for (const size_t copy : record.absent) flushed += store_record(region.copy(copy), record);
    if (bodies_of) {
      const size_t whole = *bodies_of;
      const std::span<const uint64_t> bodies = view_of(record).bodies();
      for (const uint64_t packed : bodies) {
        const BodyView body = unpack_body(packed);
        lacked |= region.equalise(whole, body.offset, body.words * kWordSize);
      }
    }
    completed += lacked ? 1 : 0;
  }
  if (!flushed.none()) region.fence(std::move(flushed));
  return completed;
}

void make_home(pmem::Region& region, const Geometry& geometry,
               const std::vector<Committed>& committed) {
  std::vector<uint64_t> lines;
  for (const auto& [record, bodies_of] : committed) {
    const RecordView view = view_of(record);
    view.apply(region, geometry);
    view.home_lines(geometry, lines);
  }
  pmem::Flushed flushed;
  for (const uint64_t line : lines) flushed += region.flush(line, kLineSize);
  region.fence(std::move(flushed));
}

// Returns the youngest of the copies' watermarks. It was true of all copies before it was stored in
// any of them.
uint64_t youngest_watermark(const pmem::Region& region) {
  uint64_t watermark = 0;
  for (size_t copy = 0; copy < region.copies(); ++copy) {
    watermark = std::max(watermark, region.copy(copy).load(kWatermarkOffset));
  }
  return watermark;
}

bool any_copy_was_read(const pmem::Region& region) {
  for (size_t copy = 0; copy < region.copies(); ++copy) {
    if (region.copy(copy).lost() == 0) return true;
  }
  return false;
}

}  // namespace

Result<Recovery> recover_journal(pmem::Region& region, const Geometry& geometry) {
  const uint64_t watermark = youngest_watermark(region);
  if (watermark > kMaxSequence) return Error{EIO, "the journal's watermark is damaged"};
  std::vector<Found> found = scan_copies(region, geometry, watermark);
  // A record on a lost page would be taken for a record that never was committed, for good.
  if (!any_copy_was_read(region))
    return Error{EIO, std::to_string(region.lost()) + " pages of META are lost"};
  Recovery result{found.size(), 0, 0, watermark};
  if (found.empty() && region.alike(kWatermarkOffset, kWordSize)) return result;
  // The new watermark is past every record seen, committed or not: a torn record must never be
  // taken up later.
  if (!found.empty()) result.last_sequence = found.back().sequence;
  const std::vector<Committed> committed = committed_of(std::move(found), region, geometry);
  SFS_TRY(check_bounds(geometry, committed));
  result.records_completed = complete_copies(region, committed);
  make_home(region, geometry, committed);
  result.records_replayed = committed.size();
  region.store_word(kWatermarkOffset, result.last_sequence);
  region.fence(region.flush(kWatermarkOffset, kWordSize));
  return result;
}

}  // namespace streamfs::meta
