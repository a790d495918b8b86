#include "learning/lifetime_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "learning/page_history.h"
#include "learning/regions.h"
#include "learning/request.h"
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
      trainer_(landmarks_) {}

void LifetimeModel::begin(const Request& request) {
  if (request.offset == 0) run_ = runs_.place(request.page, request.whole_pages, clock_);
}

WriteView LifetimeModel::view(const Request& request, uint32_t index) const {
  WriteView out;
  out.page = request.page + index;
  out.vstream = request.vstream;
  out.length = half_log2(request.whole_pages);
  out.offset = half_log2(request.offset + index);
  out.tail = half_log2(request.tail_of(index));
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
  out.expected = request.expected_of(index);
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
  const Tokens<kHistoryTokens> tokens = tokens_of(seen_);
  const float lifetime = landmarks_.lifetime(trainer_.model().score(tokens));
  ++clock_;
  PageHistory::Group& group = pages_.group_of(page);
  PageLife& life = group.pages[page % PageHistory::kGroupPages];
  if (life.alive) end_life(page, life, group, 0);
  life.written = static_cast<uint32_t>(clock_);
  life.ever = life.alive = true;
  if (request.teaches(index)) trainer_.add(tokens, page, clock_);
  trainer_.train(clock_, [&](uint64_t at, uint64_t written) { return pages_.lives(at, written); });
  return lifetime;
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

}  // namespace streamfs::learning
