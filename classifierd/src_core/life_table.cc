#include "classifierd/src_core/life_table.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "base/wire/record_check.h"

namespace streamfs::classifier {

using wire::TelemetryKind;
using wire::TelemetryRecord;

namespace {

constexpr uint32_t kFirstEpochPages = 1024;
constexpr double kDecayPages = 65536;  // decays are per so many pages written
constexpr double kVolumeDecay = 0.5;
constexpr double kVolumeTrace = 1e-3;  // Less than this many pages is nothing.
// Records of several rings may be a little out of order, and lost records leave gaps; beyond
// these the clock has jumped.
constexpr uint64_t kBackwardMax = 1U << 20;
constexpr uint64_t kForwardMax = 1U << 26;

bool sound(double value) {
  return std::isfinite(value) && value >= 0;
}

bool sound(const CellLife& life) {
  return life.cell < kCells && sound(life.volume_pages) &&
         std::ranges::all_of(
             life.known.deaths, [](double v) { return sound(v); }) &&
         std::ranges::all_of(life.known.entered, [](double v) { return sound(v); });
}

// A birth keeps only the low half of its clock; a clock a little ahead of now came out of order.
struct Span {
  uint64_t born = 0, age = 0;
};
Span span_of(const BirthMap::Birth& birth, uint64_t now) {
  const uint32_t back = static_cast<uint32_t>(now) - birth.clock;
  const uint32_t ahead = birth.clock - static_cast<uint32_t>(now);
  if (ahead <= kBackwardMax) return {now + ahead, 0};
  return {now - std::min<uint64_t>(back, now), back};
}

}  // namespace

LifeTable::LifeTable(uint64_t capacity_blocks, uint32_t epoch_pages, double decay,
                     size_t groups_max)
    : capacity_blocks_(std::clamp<uint64_t>(capacity_blocks, 1, wire::kCapacityBlocksMax)),
      epoch_target_(std::max(epoch_pages, 1U)),
      decay_(decay),
      births_(groups_max),
      index_(kCells),
      uses_(wire::kModelVStreams),
      epoch_now_(std::min(epoch_target_, kFirstEpochPages)) {
  if (index_.items().empty()) throw std::bad_alloc();
}

size_t LifeTable::feed(std::span<const TelemetryRecord> records, learning::ChunkMap chunks) {
  size_t taken = 0;
  while (taken < records.size() && !epoch_due()) {
    const TelemetryRecord& record = records[taken++];
    if (believable(record, capacity_blocks_)) {
      learn(record, chunks);
    } else {
      ++rejected_;
    }
  }
  return taken;
}

void LifeTable::learn(const TelemetryRecord& record, learning::ChunkMap chunks) {
  const uint64_t now = local_clock(record.clock_pages);
  ++records_;
  if (record.kind == TelemetryKind::kTrim) {
    kill(record.block, record.pages, now);
    clock_ = std::max(clock_, now);
    return;
  }
  const uint16_t vstream = vstream_of(record);
  for (uint32_t i = 0; i < record.pages; ++i) {
    const uint32_t shape = wire::shape_of(record.request_pages, record.request_offset + i,
                                          record.age, chunks.of(record.block + i));
    write_page(record.block + i, now + i, cell_of(vstream, shape));
  }
  clock_ = std::max(clock_, now + record.pages);
}

// Returns 0 for a late record of the number's use before the current one.
uint16_t LifeTable::vstream_of(const TelemetryRecord& record) {
  Uses& uses = uses_[record.vstream];
  if (record.generation == uses.before) return 0;
  if (record.generation != uses.now) {
    if (uses.now >= 0) forget(record.vstream);
    uses = {record.generation, uses.now};
  }
  return record.vstream;
}

void LifeTable::forget(uint16_t vstream) {
  const auto of_it = [vstream](uint32_t cell) { return cell / wire::kShapes == vstream; };
  births_.forget([&](const BirthMap::Birth& birth) { return of_it(birth.cell_plus - 1); });
  for (Cell& cell : cells_) {
    if (!of_it(cell.life.cell)) continue;
    const uint32_t number = cell.life.cell;
    cell = {};
    cell.life.cell = number;
  }
}

uint64_t LifeTable::local_clock(uint64_t device_clock) {
  const uint64_t local = device_clock + offset_;
  const bool behind = local < clock_ && clock_ - local > kBackwardMax;
  const bool ahead = local > clock_ && local - clock_ > kForwardMax;
  if (anchored_ && !behind && !ahead) return local;
  clock_jumps_ += anchored_ ? 1 : 0;
  anchored_ = true;
  offset_ = clock_ - device_clock;
  return clock_;
}

void LifeTable::write_page(uint64_t block, uint64_t now, uint32_t cell) {
  Cell& home = cells_[index_of(cell)];
  home.life.volume_pages += 1;
  if (!births_.follows(block)) return;
  // A record that comes late belongs to the epoch it arrives in, or its death would be sought in
  // a cohort that does not count it.
  const uint64_t birth = std::max(now, epoch_start_);
  home.cohorts.born(epoch_start_);
  const BirthMap::Birth before = births_.set(block, birth, cell);
  if (before.cell_plus != 0) died(before, now);
  while (births_.full()) follow_fewer(now);
}

void LifeTable::kill(uint64_t block, uint64_t pages, uint64_t now) {
  births_.take(block, pages, [&](const BirthMap::Birth& birth) { died(birth, now); });
}

void LifeTable::died(const BirthMap::Birth& birth, uint64_t now) {
  const Span life = span_of(birth, now);
  Cell& cell = cells_[index_of(birth.cell_plus - 1)];
  const uint64_t weight = births_.one_in();
  cell.life.events += cell.last_event == records_ ? 0 : 1;
  cell.last_event = records_;
  cell.cohorts.died(life.born, life.age, static_cast<double>(weight), cell.life.known);
  deaths_ += weight;
}

void LifeTable::follow_fewer(uint64_t now) {
  births_.thin([&](const BirthMap::Birth& birth) {
    cells_[index_of(birth.cell_plus - 1)].cohorts.lost(span_of(birth, now).born);
  });
  for (Cell& cell : cells_) cell.cohorts.halve_deaths();
}

uint32_t LifeTable::index_of(uint32_t cell) {
  uint32_t& place = index_.items()[cell];
  if (place == 0) {
    cells_.emplace_back();
    cells_.back().life.cell = cell;
    place = static_cast<uint32_t>(cells_.size());
  }
  return place - 1;
}

void LifeTable::end_epoch() {
  const double share = std::min(1.0, static_cast<double>(clock_ - epoch_start_) / kDecayPages);
  const double factor = std::pow(decay_, share);
  const double volume_factor = std::pow(kVolumeDecay, share);
  for (Cell& cell : cells_) {
    cell.life.known.decay(factor);
    cell.life.events *= factor;
    cell.cohorts.commit(clock_, static_cast<double>(births_.one_in()), cell.life.known);
    cell.life.volume_pages *= volume_factor;
    if (cell.life.volume_pages < kVolumeTrace) cell.life.volume_pages = 0;
  }
  ++epochs_;
  epoch_start_ = clock_;
  epoch_now_ = static_cast<uint32_t>(std::min<uint64_t>(epoch_target_, uint64_t{epoch_now_} * 2));
}

void LifeTable::forget_births() {
  births_.clear();
  for (Cell& cell : cells_) cell.cohorts.forget();
}

std::vector<CellLife> LifeTable::cells() const {
  std::vector<CellLife> out;
  out.reserve(cells_.size());
  for (const Cell& cell : cells_) out.push_back(cell.life);
  return out;
}

bool LifeTable::restore(std::span<const CellLife> cells) {
  if (!std::ranges::all_of(cells, [](const CellLife& life) { return sound(life); })) return false;
  forget_births();
  for (const Cell& cell : cells_) index_.items()[cell.life.cell] = 0;
  cells_.clear();
  for (const CellLife& life : cells) cells_[index_of(life.cell)].life = life;
  epoch_now_ = epoch_target_;
  return true;
}

}  // namespace streamfs::classifier
