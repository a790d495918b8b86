#include "learning/lifetime_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/mix.h"
#include "base/wire/model_table.h"
#include "learning/logistic.h"
#include "learning/page_history.h"
#include "learning/regions.h"
#include "learning/steps.h"
#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {
namespace {

constexpr float kGroupAlpha = 0.25F;  // of the mean life around a page

uint8_t known(uint8_t steps) {
  return static_cast<uint8_t>(steps + 1);
}

uint8_t quantised(float mean) {
  return mean < 0 ? 0 : known(static_cast<uint8_t>(mean));
}

}  // namespace

LifetimeModel::LifetimeModel(uint64_t device_pages, uint64_t live_pages, size_t history_bytes)
    : pages_(device_pages, history_bytes),
      regions_(device_pages),
      landmarks_(live_pages),
      every_(landmarks_.ages().back() / kWaitingMax + 1) {}

void LifetimeModel::begin(const Request& request) {
  if (request.offset == 0) run_ = runs_.place(request.page, request.whole_pages, clock_);
}

WriteView LifetimeModel::view(const Request& request, uint32_t index) const {
  WriteView out;
  out.page = request.page + index;
  out.vstream = request.vstream;
  const uint32_t offset = request.offset + index;
  out.length = half_log2(request.whole_pages);
  out.offset = half_log2(offset);
  out.tail = half_log2(request.whole_pages - 1 - std::min(offset, request.whole_pages - 1));
  out.run = half_log2(run_.before);
  out.overlap = run_.continues ? static_cast<uint8_t>(run_.overlap + 1) : uint8_t{0};
  out.overlaps_mean = static_cast<uint8_t>(run_.overlaps * 4);
  const PageHistory::Group* const group = pages_.find_group(out.page);
  const auto near_life = [&](uint64_t page) {
    const bool same = page / PageHistory::kGroupPages == out.page / PageHistory::kGroupPages;
    if (!same) return pages_.find(page);
    return group == nullptr ? PageLife{} : group->pages[page % PageHistory::kGroupPages];
  };
  const PageLife life = near_life(out.page);
  if (life.ever) out.age = known(half_log2(life.age(clock_)));
  out.last = life.last;
  out.before = life.before;
  out.trim_length = life.trim_length;
  out.alive = life.alive;
  const uint32_t shape = wire::shape_of(request.whole_pages, offset, request.age);
  if (shape < request.expected.size()) out.expected = request.expected[shape];
  const PageLife left = out.page == 0 ? PageLife{} : near_life(out.page - 1);
  const PageLife right = near_life(out.page + 1);
  if (left.alive) out.left_age = known(half_log2(left.age(clock_)));
  if (right.alive) out.right_age = known(half_log2(right.age(clock_)));
  out.left_last = left.last;
  out.right_last = right.last;
  const RegionLife near = regions_.find(Regions::k1MiB, out.page);
  out.mean_64k = group == nullptr ? uint8_t{0} : quantised(group->mean_life);
  out.mean_1m = quantised(near.all);
  out.trimmed_1m = quantised(near.trimmed);
  out.trimmed_16m = quantised(regions_.find(Regions::k16MiB, out.page).trimmed);
  return out;
}

float LifetimeModel::write_page(const Request& request, uint32_t index) {
  const uint64_t page = request.page + index;
  if (page >= pages_.size()) return landmarks_.longest();
  seen_ = view(request, index);
  const Tokens tokens = tokens_of(seen_);
  const float lifetime = landmarks_.lifetime(logistic_.score(tokens));
  ++clock_;
  PageHistory::Group& group = pages_.group_of(page);
  PageLife& life = group.pages[page % PageHistory::kGroupPages];
  if (life.alive) end_life(page, life, group, 0);
  life.written = static_cast<uint32_t>(clock_);
  life.ever = life.alive = true;
  if (teaches(request, index)) waiting_.push_back({tokens, page, clock_});
  train();
  return lifetime;
}

// The inner pages of a request mostly share their fate: taking each for a witness of its own would
// make the model sure of what it saw once. And of a large device's writes only some can wait.
bool LifetimeModel::teaches(const Request& request, uint32_t index) const {
  if (clock_ % every_ != 0) return false;
  const uint32_t offset = request.offset + index;
  const bool inner = offset > 0 && offset + 2 < request.whole_pages;
  return !inner || mix64(request.page + index) % kInnerOneIn == 0;
}

void LifetimeModel::end_life(uint64_t page, PageLife& life, PageHistory::Group& group,
                             uint8_t trim_length) {
  const uint32_t age = life.age(clock_);
  life.before = life.last;
  life.last = known(half_log2(age));
  life.trim_length = trim_length;
  life.alive = false;
  const float lived = 2 * std::log2(static_cast<float>(age) + 1);
  move_mean(group.mean_life, lived, kGroupAlpha);
  regions_.died(page, lived, trim_length != 0);
}

void LifetimeModel::trim(uint64_t page, uint64_t pages) {
  if (page >= pages_.size()) return;
  const uint8_t length = known(half_log2(pages));
  const uint64_t end = page + std::min(pages, pages_.size() - page);
  pages_.for_each_known(page, end, [&](uint64_t at, PageLife& life, PageHistory::Group& group) {
    if (life.alive) end_life(at, life, group, length);
  });
}

// What is forgotten was not written again before, or it would not have been the oldest. A trim of
// it goes unseen.
bool LifetimeModel::lives(const Waiting& write) const {
  const PageLife life = pages_.find(write.page);
  if (!life.ever) return true;
  return life.alive && life.written == static_cast<uint32_t>(write.clock);
}

void LifetimeModel::train() {
  for (uint32_t j = 0; j < kLandmarks; ++j) {
    uint64_t& next = trained_[j];
    for (; next < first_waiting_ + waiting_.size(); ++next) {
      const Waiting& write = waiting_[next - first_waiting_];
      if (clock_ - write.clock < landmarks_.ages()[j]) break;
      logistic_.train(j, write.tokens, lives(write));
    }
  }
  while (!waiting_.empty() && trained_.back() > first_waiting_) {
    waiting_.pop_front();
    ++first_waiting_;
  }
}

}  // namespace streamfs::learning
