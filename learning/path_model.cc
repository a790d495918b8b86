#include "learning/path_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "learning/logistic.h"
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
          .age = request.age,
          .file_place = request.file_place};
}

PathModel::PathModel(uint64_t device_pages, uint64_t live_pages, size_t history_bytes)
    : pages_(device_pages, history_bytes), landmarks_(live_pages), trainer_(landmarks_) {
  tokens_ = tokens_of(seen_);
  lifetime_ = lifetime_of(tokens_, weights_.rows(), landmarks_);
}

void PathModel::snapshot() {
  weights_.take(trainer_.model());
  lifetime_ = lifetime_of(tokens_, weights_.rows(), landmarks_);
}

void PathModel::restore(Logistic<kPathTokens> learned) {
  trainer_.restore(std::move(learned));
  snapshot();
}

float PathModel::write_page(const Request& request, uint32_t index) {
  const uint64_t page = request.page + index;
  if (page >= pages_.size()) return landmarks_.longest();
  const PathView view = path_view(request, index);
  if (!view.like(seen_)) {
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
