#include "classifierd/src_core/backoff.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/mix.h"

namespace streamfs::classifier {

namespace {

constexpr uint32_t kShapesOfChunk = wire::kShapes / wire::kChunkClasses;

uint64_t mix(uint64_t hash, uint64_t value) {
  return mix64(hash + value + 0x9e3779b97f4a7c15);
}

}  // namespace

Backoff::Backoff(std::vector<uint32_t> levels, double kappa, double deadband_log2,
                 double prior_log2)
    : levels_(std::move(levels)),
      kappa_(kappa),
      deadband_log2_(deadband_log2),
      prior_log2_(prior_log2),
      known_(levels_.size()) {}

uint64_t Backoff::key(size_t level, uint16_t vstream, uint32_t shape) const {
  const uint32_t features = levels_[level];
  const VStreamContext context = vstream < contexts_.size() ? contexts_[vstream] : VStreamContext{};
  uint64_t hash = level;
  if ((features & kComm) != 0) hash = mix(hash, context.comm);
  if ((features & kExtension) != 0) hash = mix(hash, context.extension);
  if ((features & kDirectory) != 0) hash = mix(hash, context.directory);
  if ((features & kVStream) != 0) hash = mix(hash, vstream);
  const uint32_t age = shape / wire::kEndClasses % wire::kAgeClasses;
  if ((features & kChunk) != 0) hash = mix(hash, shape / wire::kEndClasses / wire::kAgeClasses);
  if ((features & kEnd) != 0) hash = mix(hash, shape % wire::kEndClasses);
  if ((features & kAge) != 0) return mix(hash, age);
  if ((features & kOverwrite) != 0) return mix(hash, age == wire::kAgeNew ? 0 : 1);
  return hash;
}

void Backoff::fit(std::span<const CellLife> cells, std::vector<VStreamContext> contexts) {
  contexts_ = std::move(contexts);
  chunk_classes_.reset();
  for (const CellLife& life : cells) chunk_classes_.set(life.cell % wire::kShapes / kShapesOfChunk);
  std::unordered_map<uint64_t, Hazard> sums;
  for (size_t level = 0; level < levels_.size(); ++level) {
    sums.clear();
    for (const CellLife& life : cells) {
      const auto vstream = static_cast<uint16_t>(life.cell / wire::kShapes);
      sums[key(level, vstream, life.cell % wire::kShapes)].add(life.known);
    }
    known_[level].clear();
    for (const auto& [hash, hazard] : sums) {
      known_[level][hash] = {hazard.mean_log2(), hazard.evidence()};
    }
  }
}

Estimate Backoff::predict(uint16_t vstream, uint32_t shape) const {
  const bool known_class = chunk_classes_[shape / kShapesOfChunk];
  if (!known_class) shape %= kShapesOfChunk;
  double guess = prior_log2_;
  double own = 0;
  bool any = false;
  for (size_t level = 0; level < levels_.size(); ++level) {
    const auto found = known_[level].find(key(level, vstream, shape));
    const bool empty = found == known_[level].end() || found->second.mean_log2 < 0;
    own = empty ? 0 : found->second.evidence;
    if (empty) continue;
    const double mean = found->second.mean_log2;
    // A shape is taken for different only if it is by much: its cells are thin, and pages of one
    // request that die together must not be torn apart by noise.
    const double dead = (levels_[level] & kShape) == kShape ? deadband_log2_ : 0;
    const double apart = mean - guess;
    if (!any)
      guess = mean;
    else if (std::abs(apart) >= dead)
      guess += apart * own / (own + kappa_);
    any = true;
  }
  return {guess, known_class ? own : 0};
}

}  // namespace streamfs::classifier
