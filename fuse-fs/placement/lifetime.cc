#include "fuse-fs/placement/lifetime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/assert.h"
#include "base/types.h"
#include "learning/lifetime_rules.h"

namespace streamfs::placement {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// A stamp: clock, low 32 bits | vStream << 32 | living pages << 48.
constexpr uint64_t make_stamp(uint32_t clock, uint16_t vstream, uint32_t live) {
  return clock | uint64_t{vstream} << 32 | uint64_t{live} << 48;
}
constexpr uint32_t clock_of(uint64_t stamp) {
  return static_cast<uint32_t>(stamp);
}
constexpr uint16_t vstream_of(uint64_t stamp) {
  return static_cast<uint16_t>(stamp >> 32);
}
constexpr uint32_t live_of(uint64_t stamp) {
  return static_cast<uint32_t>(stamp >> 48);
}
constexpr uint64_t count_of(uint32_t mask) {
  return static_cast<uint64_t>(std::popcount(mask));
}

// Returns the bits of the unit's pages that [first, last) covers.
constexpr uint32_t mask_of(uint64_t unit, uint64_t first, uint64_t last) {
  const uint64_t base = unit * kStampPages;
  const uint64_t from = std::max(first, base) - base;
  const uint64_t to = std::min(last, base + kStampPages) - base;
  return ((1U << to) - 1) & ~((1U << from) - 1);
}

// Returns how much a count grew; 0 if forget() has made it smaller meanwhile.
double since(uint64_t now, uint64_t then) {
  return static_cast<double>(std::max<int64_t>(static_cast<int64_t>(now - then), 0));
}

void add(std::atomic<double>& value, double amount) {
  value.store(value.load(kRelaxed) + amount, kRelaxed);
}

}  // namespace

LifetimeTable::LifetimeTable(uint64_t capacity_blocks)
    : counts_(std::make_unique<std::array<Counts, kVStreams>>()),
      windows_(std::make_unique<std::array<Window, kVStreams>>()) {
  grow(capacity_blocks);
}

LifetimeTable::~LifetimeTable() = default;

// A new piece has at least an eighth of the present units, so that kPiecesMax pieces last. If there
// is no memory, blocks have no stamps and nothing is learnt from them.
void LifetimeTable::grow(uint64_t capacity_blocks) {
  const uint64_t there = units_.load(kRelaxed);
  const uint64_t wanted = div_round_up(capacity_blocks, kStampPages);
  if (wanted <= there || pieces_used_ == kPiecesMax) return;
  const uint64_t added = std::max(wanted - there, there / 8);
  Piece& piece = pieces_[pieces_used_];
  piece = Piece(added);
  if (piece.items().empty()) return;
  ++pieces_used_;
  units_.store(there + added, std::memory_order_release);
}

std::atomic<uint64_t>& LifetimeTable::stamp(uint64_t unit) const {
  for (const Piece& piece : pieces_) {
    if (unit < piece.items().size()) return piece.items()[unit];
    unit -= piece.items().size();
  }
  assertion_failed("a unit of the table", __FILE__, __LINE__);
}

// The age is signed, because another thread's stamp may be a little ahead of the clock that this
// thread has seen.
uint64_t LifetimeTable::written_at(uint32_t stamp_clock) const {
  const uint64_t clock = now();
  const auto age = static_cast<int32_t>(static_cast<uint32_t>(clock) - stamp_clock);
  return clock - static_cast<uint64_t>(int64_t{age});
}

uint64_t LifetimeTable::born(BlockNo first, uint32_t pages, VStreamId vstream) {
  const uint64_t before = clock_.fetch_add(pages, kRelaxed);
  Counts& counts = (*counts_)[vstream.value];
  counts.written.fetch_add(pages, kRelaxed);
  const uint64_t last = std::min<uint64_t>(first.value + pages, this->pages());
  for (uint64_t at = first.value; at < last; at = round_down(at, kStampPages) + kStampPages) {
    const uint64_t unit = at / kStampPages;
    const uint32_t pages_here = mask_of(unit, first.value, last);
    replace(stamp(unit), pages_here, pages_here, vstream);
  }
  return before;
}

void LifetimeTable::died(BlockNo first, uint64_t pages) {
  const uint64_t last = std::min<uint64_t>(first.value + pages, this->pages());
  for (uint64_t at = first.value; at < last; at = round_down(at, kStampPages) + kStampPages) {
    const uint64_t unit = at / kStampPages;
    std::atomic<uint64_t>& here = stamp(unit);
    if (here.load(kRelaxed) == 0) continue;
    replace(here, mask_of(unit, first.value, last), 0, kDefaultVStream);
  }
}

// Exchanges a unit's stamp, then moves the counts from the old stamp to the new one. The exchange
// is atomic, so every stamp enters the sums once and leaves them once.
void LifetimeTable::replace(std::atomic<uint64_t>& unit, uint32_t dying, uint32_t newborn,
                            VStreamId vstream) {
  const uint64_t clock = now();
  uint64_t old = unit.load(kRelaxed), next = 0;
  do {
    const uint32_t live = (live_of(old) & ~dying) | newborn;
    const uint16_t owner = newborn != 0 ? vstream.value : vstream_of(old);
    next = live == 0 ? 0 : make_stamp(shared_clock(old, live, owner, clock), owner, live);
  } while (!unit.compare_exchange_weak(old, next, kRelaxed));
  leave(old, live_of(old) & dying, clock);
  enter(next);
  if (old != 0) carry_age(old, next, live_of(old) & ~dying, clock);
}

void LifetimeTable::leave(uint64_t stamp, uint32_t dying, uint64_t clock) {
  if (stamp == 0) return;
  Counts& counts = (*counts_)[vstream_of(stamp)];
  const uint64_t written = written_at(clock_of(stamp));
  counts.live.fetch_sub(count_of(live_of(stamp)), kRelaxed);
  counts.written_sum.fetch_sub(count_of(live_of(stamp)) * written, kRelaxed);
  counts.dead.fetch_add(count_of(dying), kRelaxed);
  counts.dead_sum.fetch_add(count_of(dying) * (clock - written), kRelaxed);
}

void LifetimeTable::enter(uint64_t stamp) {
  if (stamp == 0) return;
  Counts& counts = (*counts_)[vstream_of(stamp)];
  counts.live.fetch_add(count_of(live_of(stamp)), kRelaxed);
  counts.written_sum.fetch_add(count_of(live_of(stamp)) * written_at(clock_of(stamp)), kRelaxed);
}

// The survivors of a unit carry their age into its new stamp. Age that the stamp cannot carry (all
// of it if the vStream changes, else a rounding) stays with the old vStream as exposure without a
// death, so that no exposure is ever lost.
void LifetimeTable::carry_age(uint64_t old, uint64_t next, uint32_t surviving, uint64_t clock) {
  const uint64_t had = count_of(surviving) * (clock - written_at(clock_of(old)));
  const bool same = next != 0 && vstream_of(next) == vstream_of(old);
  const uint64_t carried =
      same ? count_of(live_of(next)) * (clock - written_at(clock_of(next))) : 0;
  (*counts_)[vstream_of(old)].dead_sum.fetch_add(had - carried, kRelaxed);
}

// Returns the mean write time of the surviving pages and the new ones.
uint32_t LifetimeTable::shared_clock(uint64_t old, uint32_t live, uint16_t owner,
                                     uint64_t clock) const {
  const uint32_t surviving = live_of(old) & live;
  if (old == 0 || vstream_of(old) != owner) return static_cast<uint32_t>(clock);
  const uint64_t age = clock - std::min(clock, written_at(clock_of(old)));
  return static_cast<uint32_t>(clock - age * count_of(surviving) / count_of(live));
}

uint64_t LifetimeTable::exposure(VStreamId vstream) const {
  const Counts& counts = (*counts_)[vstream.value];
  return counts.dead_sum.load(kRelaxed) + counts.live.load(kRelaxed) * now() -
         counts.written_sum.load(kRelaxed);
}

void LifetimeTable::close_window() {
  for (uint32_t v = 0; v < kVStreams; ++v) {
    const Counts& counts = (*counts_)[v];
    Window& window = (*windows_)[v];
    const uint64_t written = counts.written.load(kRelaxed);
    if (written == 0) continue;
    const uint64_t total = exposure(VStreamId{static_cast<uint16_t>(v)});
    const uint64_t dead = counts.dead.load(kRelaxed);
    const double gained = since(total, window.exposure_at.exchange(total, kRelaxed));
    const double died_now = since(dead, window.dead_at.exchange(dead, kRelaxed));
    const double written_now = since(written, window.written_at.exchange(written, kRelaxed));
    const double keep = learning::kept_of_lifetime(window.deaths.load(kRelaxed));
    window.exposure.store(window.exposure.load(kRelaxed) * keep, kRelaxed);
    window.deaths.store(window.deaths.load(kRelaxed) * keep, kRelaxed);
    window.written.store(window.written.load(kRelaxed) * kDecay, kRelaxed);
    add(window.exposure, gained);
    add(window.deaths, died_now);
    add(window.written, written_now);
  }
}

LifetimeTable::Seen& LifetimeTable::Seen::operator+=(const Seen& other) {
  exposure += other.exposure;
  deaths += other.deaths;
  recent_pages += other.recent_pages;
  expected_pages = std::max(expected_pages, other.expected_pages);
  written_pages += other.written_pages;
  live_pages += other.live_pages;
  dead_pages += other.dead_pages;
  lived_pages += other.lived_pages;
  return *this;
}

std::optional<double> LifetimeTable::Seen::lifetime_pages() const {
  if (deaths < kDeathsMin) return std::nullopt;
  return std::max(1.0, exposure / deaths);
}

LifetimeTable::Seen LifetimeTable::seen(VStreamId vstream) const {
  const Counts& counts = (*counts_)[vstream.value];
  const Window& window = (*windows_)[vstream.value];
  Seen out;
  out.lived_pages = exposure(vstream);
  out.dead_pages = counts.dead.load(kRelaxed);
  out.live_pages = counts.live.load(kRelaxed);
  out.written_pages = counts.written.load(kRelaxed);
  out.expected_pages = expected_pages(vstream);
  const auto grown = [](const std::atomic<double>& kept, uint64_t now,
                        const std::atomic<uint64_t>& then) {
    return kept.load(kRelaxed) + since(now, then.load(kRelaxed));
  };
  out.exposure = grown(window.exposure, out.lived_pages, window.exposure_at);
  out.deaths = grown(window.deaths, out.dead_pages, window.dead_at);
  out.recent_pages = grown(window.written, out.written_pages, window.written_at);
  return out;
}

std::optional<double> LifetimeTable::lifetime_pages(VStreamId vstream) const {
  return seen(vstream).lifetime_pages();
}

std::optional<LifetimeTable::Birth> LifetimeTable::birth(BlockNo page) const {
  if (page.value >= pages()) return std::nullopt;
  const uint64_t found = stamp(page.value / kStampPages).load(kRelaxed);
  if ((live_of(found) >> page.value % kStampPages & 1U) == 0) return std::nullopt;
  return Birth{VStreamId{vstream_of(found)}, written_at(clock_of(found))};
}

std::optional<double> LifetimeTable::estimate_pages(const Seen& seen) const {
  if (const auto known = seen.lifetime_pages()) return known;
  const auto lived = static_cast<double>(seen.lived_pages);
  const auto old_age = static_cast<double>(pages()) / 4;
  if (seen.written_pages < kStampPages ||
      lived / static_cast<double>(seen.written_pages) < old_age) {
    return seen.expected_pages > 0 ? std::optional(seen.expected_pages) : std::nullopt;
  }
  return std::max(seen.expected_pages, lived / static_cast<double>(seen.dead_pages + 1));
}

void LifetimeTable::set_expected(VStreamId vstream, double lifetime_pages) {
  (*windows_)[vstream.value].expected.store(lifetime_pages, kRelaxed);
}

double LifetimeTable::expected_pages(VStreamId vstream) const {
  return (*windows_)[vstream.value].expected.load(kRelaxed);
}

void LifetimeTable::set_prior(VStreamId vstream, double lifetime_pages) {
  Window& window = (*windows_)[vstream.value];
  window.exposure.store(lifetime_pages * kPriorDeaths, kRelaxed);
  window.deaths.store(kPriorDeaths, kRelaxed);
}

uint64_t LifetimeTable::written_pages(VStreamId vstream) const {
  return (*counts_)[vstream.value].written.load(kRelaxed);
}
uint64_t LifetimeTable::live_pages(VStreamId vstream) const {
  return (*counts_)[vstream.value].live.load(kRelaxed);
}

void LifetimeTable::forget(VStreamId vstream) {
  Counts& counts = (*counts_)[vstream.value];
  for (auto* each : {&counts.dead_sum, &counts.dead, &counts.written}) each->store(0, kRelaxed);
  Window& window = (*windows_)[vstream.value];
  for (auto* each : {&window.exposure_at, &window.dead_at, &window.written_at}) {
    each->store(0, kRelaxed);
  }
  for (auto* each : {&window.exposure, &window.deaths, &window.written, &window.expected}) {
    each->store(0, kRelaxed);
  }
}

// Makes stamps that are older than 2^30 pages exactly that old, before their age passes 2^31.
void LifetimeTable::sweep() {
  const uint64_t clock = now();
  if (clock - swept_at_ < (uint64_t{1} << 29)) return;
  swept_at_ = clock;
  uint64_t left = units_.load(std::memory_order_acquire);
  for (auto piece = pieces_.begin(); left > 0; left -= piece->items().size(), ++piece) {
    for (auto& unit : piece->items()) age_stamp(unit, clock);
  }
}

void LifetimeTable::age_stamp(std::atomic<uint64_t>& unit, uint64_t clock) {
  constexpr uint64_t kOldest = uint64_t{1} << 30;
  uint64_t old = unit.load(kRelaxed);
  if (old == 0 || clock < written_at(clock_of(old)) + kOldest) return;
  const uint64_t next =
      make_stamp(static_cast<uint32_t>(clock - kOldest), vstream_of(old), live_of(old));
  if (!unit.compare_exchange_strong(old, next, kRelaxed)) return;
  const uint64_t moved = written_at(clock_of(next)) - written_at(clock_of(old));
  Counts& counts = (*counts_)[vstream_of(old)];
  counts.written_sum.fetch_add(count_of(live_of(old)) * moved, kRelaxed);
  counts.dead_sum.fetch_add(count_of(live_of(old)) * moved, kRelaxed);
}

}  // namespace streamfs::placement
