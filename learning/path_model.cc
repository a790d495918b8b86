#include "learning/path_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "learning/page_history.h"
#include "learning/path_weights.h"
#include "learning/request.h"
#include "learning/steps.h"
#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {

PathView path_view(const Request& request, uint32_t index) {
  return {.page = request.page + index,
          .vstream = request.vstream,
          .expected = request.expected_of(index),
          .length = half_log2(request.whole_pages),
          .offset = half_log2(request.offset + index),
          .tail = half_log2(request.tail_of(index)),
          .age = request.age};
}

PathModel::PathModel(uint64_t device_pages, uint64_t live_pages, size_t history_bytes)
    : pages_(device_pages, history_bytes),
      landmarks_(live_pages),
      trainer_(landmarks_),
      snapshot_pages_(std::max(live_pages / 16, std::min<uint64_t>(live_pages / 4, 16384))) {
  tokens_ = tokens_of(seen_);
  lifetime_ = lifetime_of(tokens_, weights_.rows(), landmarks_);
}

float PathModel::write_page(const Request& request, uint32_t index) {
  const uint64_t page = request.page + index;
  if (page >= pages_.size()) return landmarks_.longest();
  const PathView view = path_view(request, index);
  const bool fresh = clock_ - snapshot_at_ >= snapshot_pages_;
  if (fresh) {
    weights_ = PathWeights(trainer_.model());
    snapshot_at_ = clock_;
  }
  if (fresh || !view.like(seen_)) {
    seen_ = view;
    tokens_ = tokens_of(view);
    lifetime_ = lifetime_of(tokens_, weights_.rows(), landmarks_);
  }
  ++clock_;
  PageLife& life = pages_.group_of(page).pages[page % PageHistory::kGroupPages];
  life.written = static_cast<uint32_t>(clock_);
  life.ever = life.alive = true;
  if (request.teaches(index)) trainer_.add(tokens_, page, clock_);
  trainer_.train(clock_, [&](uint64_t at, uint64_t written) { return pages_.lives(at, written); });
  return lifetime_;
}

void PathModel::trim(uint64_t page, uint64_t pages) {
  if (page >= pages_.size()) return;
  const uint64_t end = page + std::min(pages, pages_.size() - page);
  pages_.for_each_known(page, end,
                        [](uint64_t, PageLife& life, PageHistory::Group&) { life.alive = false; });
}

}  // namespace streamfs::learning
