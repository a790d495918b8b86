#include "lab/placement/lifetime_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "lab/placement/life_table.h"
#include "lab/placement/policy.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

constexpr size_t kKindsMax = 65536;
constexpr double kEvidence = 512;  // pages at which a kind counts as much as the more general ones
constexpr double kUnknownLog2 = 16;
constexpr uint32_t kFirstEpochs = LifeTable::kEpochPages / 8;

// Returns the class of a page's place: the last page, the last but one, or any other. Requests of
// one and two pages have classes of their own.
uint64_t place_of(const PageWrite& write) {
  const uint32_t to_end = std::min(write.pages_to_request_end(), 2u);
  return write.request_pages < 3 ? 4 * uint64_t{write.request_pages} + to_end : to_end;
}

// Kinds of different depth have different keys, because each depth has a bit of its own.
uint64_t key_of(uint64_t depth, uint64_t overwrite, uint64_t context, uint64_t place) {
  return depth << 60 | overwrite << 48 | place << 32 | context;
}

}  // namespace

LifetimeTable::LifetimeTable(uint16_t streams, uint32_t pages)
    : streams_(streams),
      kinds_(1),
      kind_(pages, kRoot),
      born_at_(pages),
      edges_(streams),
      copy_edges_(kCopyClasses) {
  kinds_[kRoot].parent = kRoot;
}

LifetimeTable::KindId LifetimeTable::child(KindId parent, uint64_t key) {
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  if (kinds_.size() == kKindsMax) return parent;
  const auto id = static_cast<KindId>(kinds_.size());
  kinds_.push_back({parent, 0, {}});
  known_.emplace(key, id);
  return id;
}

LifetimeTable::KindId LifetimeTable::kind_of(const PageWrite& write) {
  const uint64_t overwrite = born_at_.known(write.page) ? 1 : 0;
  const uint64_t context = write.context != 0 ? write.context : write.vstream;
  const uint64_t place = place_of(write);
  const KindId mode = child(kRoot, key_of(1, overwrite, 0, 0));
  const KindId with_context = child(mode, key_of(2, overwrite, context, 0));
  return child(with_context, key_of(3, overwrite, context, place));
}

template <typename Ask>
double LifetimeTable::blended(KindId kind, double otherwise, Ask ask) const {
  std::array<KindId, 4> chain{};
  size_t depth = 0;
  for (KindId id = kind; id != kRoot; id = kinds_[id].parent) chain[depth++] = id;
  double result = -1;
  while (depth-- > 0) {
    const LifeTable::Estimate estimate = ask(kinds_[chain[depth]].lives);
    if (estimate.log2_life < 0) continue;
    result = result < 0 ? estimate.log2_life
                        : (estimate.weight * estimate.log2_life + kEvidence * result) /
                              (estimate.weight + kEvidence);
  }
  return result < 0 ? otherwise : result;
}

double LifetimeTable::predicted(KindId kind) const {
  return blended(kind, kUnknownLog2, [](const LifeTable& lives) { return lives.lifetime(); });
}

ssd::FrontierId LifetimeTable::for_write(const PageWrite& write, uint64_t clock) {
  if (clock > 0 && (clock % LifeTable::kEpochPages == 0 ||
                    (clock < LifeTable::kEpochPages && clock % kFirstEpochs == 0)))
    end_epoch(clock);
  const KindId kind = kind_of(write);
  trimmed(write.page, clock);
  kind_[write.page] = kind;
  born_at_.set(write.page, clock);
  for (KindId id = kind; id != kRoot; id = kinds_[id].parent) kinds_[id].lives.born(clock);
  kinds_[kind].volume += 1;
  return edges_.class_of(predicted(kind));
}

ssd::FrontierId LifetimeTable::for_copy(ssd::Lpn page, ssd::FrontierId, uint64_t clock) {
  if (!born_at_.known(page)) return streams_;
  const uint64_t age = born_at_.since(page, clock);
  // For a kind that was never seen to live so long, the guess is that it lives as long again.
  const double as_much_again = std::log2(static_cast<double>(age + 1));
  const double left = blended(kind_[page], as_much_again,
                              [&](const LifeTable& lives) { return lives.left_at(age); });
  copy_edges_.add(left, 1);
  return static_cast<ssd::FrontierId>(streams_ + copy_edges_.class_of(left));
}

void LifetimeTable::trimmed(ssd::Lpn page, uint64_t clock) {
  if (!born_at_.known(page)) return;
  for (KindId id = kind_[page]; id != kRoot; id = kinds_[id].parent)
    kinds_[id].lives.died(born_at_.at(page), clock);
  born_at_.forget(page);
}

void LifetimeTable::end_epoch(uint64_t clock) {
  const bool whole = clock % LifeTable::kEpochPages == 0;
  for (Kind& kind : kinds_) {
    if (whole) kind.lives.count_living(clock);
    if (whole || kind.lives.changed()) kind.lives.learn();
    if (whole) kind.lives.fade();
  }
  // Edges are made from the predictions that they will be used with, those of the next epoch.
  for (KindId id = 0; id < kinds_.size(); ++id) {
    if (kinds_[id].volume > 0) edges_.add(predicted(id), kinds_[id].volume);
    kinds_[id].volume /= 2;
  }
  edges_.learn();
  copy_edges_.learn();
}

}  // namespace streamfs::lab
