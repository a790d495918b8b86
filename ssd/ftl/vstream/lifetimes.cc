#include "ssd/ftl/vstream/lifetimes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "learning/cluster.h"
#include "learning/lifetime_rules.h"
#include "ssd/ftl/write_stamp.h"
#include "ssd/geometry.h"

namespace streamfs::ssd::vstream {

Lifetimes::Lifetimes(const Geometry& geometry)
    : user_pages_(geometry.user_pages),
      spare_(geometry.physical_pages(), kDeadSlot),
      programmed_(geometry),
      written_(geometry) {}

Lifetimes::Counts& Lifetimes::counts(Slot slot) {
  if (slot >= counts_.size()) counts_.resize(slot + size_t{1});
  return counts_[slot];
}

// Adds a page's write time. When a superpage fills, its pages get their mean time, and the sums of
// the live pages there change with it.
void Lifetimes::add(Ppn at, uint64_t time) {
  written_.add(at, time, [&](Ppn page, int64_t change) {
    if (spare_[page] != kDeadSlot)
      counts_[spare_[page]].written_sum += static_cast<uint64_t>(change);
  });
}

void Lifetimes::restore(Ppn at, Slot slot, uint64_t written_at, uint64_t clock) {
  clock_ = clock;
  const uint64_t time = std::min(written_at, clock);
  spare_[at] = slot;
  programmed_.set_all(at, time);
  if (slot != kDeadSlot) {
    Counts& one = counts(slot);
    ++one.live;
    ++one.written;
    one.written_sum += time;
  }
  add(at, time);
}

void Lifetimes::begin_window(uint64_t clock) {
  for (size_t i = 0; i < counts_.size(); ++i) {
    Counts& one = counts_[i];
    one.exposure_at = exposure(static_cast<Slot>(i), clock);
    one.recent = static_cast<double>(one.written);
    one.written_at = one.written;
  }
}

uint64_t Lifetimes::live_vstreams() const {
  return static_cast<uint64_t>(
      std::ranges::count_if(counts_, [](const Counts& one) { return one.live > 0; }));
}

void Lifetimes::stored(Ppn at, const WriteStamp& stamp) {
  clock_ = stamp.written_at;
  const Slot slot = spare_[at] = slot_of(stamp.vstream);
  programmed_.set_all(at, clock_);
  Counts& one = counts(slot);
  ++one.live;
  ++one.written;
  one.written_sum += clock_;
  add(at, clock_);
}

// Notes a copy. If the page's death is counted already, because it is about to be overwritten, its
// copy is dead too.
void Lifetimes::copied(Ppn to, Ppn from) {
  const uint64_t time = written_.written_at(from);
  spare_[to] = spare_[from];
  spare_[from] = kDeadSlot;
  programmed_.set_all(to, clock_);
  add(to, time);
}

void Lifetimes::dies(Ppn at, uint64_t clock) {
  const Slot slot = spare_[at];
  if (slot == kDeadSlot) return;
  spare_[at] = kDeadSlot;
  algorithm_1_.died(VStreamId{slot}, programmed_.written_at(at), clock);
  const uint64_t written_at = written_.written_at(at);
  Counts& one = counts_[slot];
  --one.live;
  one.written_sum -= written_at;
  ++one.dead;
  one.dead_sum += clock - written_at;
}

double Lifetimes::exposure(Slot slot, uint64_t clock) const {
  if (slot >= counts_.size()) return 0;
  const Counts& one = counts_[slot];
  return static_cast<double>(one.dead_sum + one.live * clock - one.written_sum);
}

std::vector<learning::Sample> Lifetimes::close_window(uint64_t clock) {
  std::vector<learning::Sample> known;
  for (size_t i = 0; i < counts_.size(); ++i) {
    Counts& one = counts_[i];
    if (one.written == 0) continue;
    const auto slot = static_cast<Slot>(i);
    const double total = exposure(slot, clock), kept = learning::kept_of_lifetime(one.deaths);
    one.exposure = one.exposure * kept + std::max(0.0, total - one.exposure_at);
    one.deaths = one.deaths * kept + static_cast<double>(one.dead - one.dead_at);
    one.recent =
        one.recent * learning::kLifetimeDecay + static_cast<double>(one.written - one.written_at);
    one.exposure_at = total;
    one.dead_at = one.dead;
    one.written_at = one.written;
    // Data that has lived long without dying is long-lived, however little of it has died.
    const bool old = total / static_cast<double>(one.written) > user_pages_ / 4;
    if (one.deaths >= learning::kDeathsMin)
      known.push_back({VStreamId{slot}, std::max(1.0, one.exposure / one.deaths), one.recent});
    else if (old)
      known.push_back({VStreamId{slot}, total / static_cast<double>(one.dead + 1), one.recent});
  }
  return known;
}

}  // namespace streamfs::ssd::vstream
