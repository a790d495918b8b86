// Learns the logistic model that the filesystem can evaluate when it places a write: its features
// are the request, the place, the vStream and the age class of the overwritten data (PathView).
//
// Predictions use a snapshot of the weights (PathWeights), because a filesystem has only published
// snapshots. A snapshot is taken after each live_pages / 16 pages written. If less than 1 GiB
// lives, it is taken after the smaller of 16,384 pages and live_pages / 4, because snapshots would
// cost more than the learning. Thread safety: none. Crash: memory only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learning/landmark_trainer.h"
#include "learning/landmarks.h"
#include "learning/page_history.h"
#include "learning/path_weights.h"
#include "learning/request.h"
#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {

PathView path_view(const Request& request, uint32_t index);

class PathModel {
 public:
  // `live_pages`: pages live at once when the device is as full as it will be.
  // `history_bytes`: bound on the memory that knows which pages live (page_history.h).
  PathModel(uint64_t device_pages, uint64_t live_pages,
            size_t history_bytes = PageHistory::kBytesMax);

  // Calls place(lifetime, follows) for each page of the request and learns from it, like
  // LifetimeModel::write().
  template <typename Place>
  void write(const Request& request, const Place& place) {
    for (uint32_t i = 0; i < request.pages; ++i) {
      place(write_page(request, i), request.offset + i > 0);
    }
  }
  void trim(uint64_t page, uint64_t pages);

  uint64_t clock() const { return clock_; }
  const Landmarks& landmarks() const { return landmarks_; }
  const PathWeights& weights() const { return weights_; }

 private:
  float write_page(const Request& request, uint32_t index);

  PageHistory pages_;
  Landmarks landmarks_;
  LandmarkTrainer<kPathTokens> trainer_;
  PathWeights weights_;
  const uint64_t snapshot_pages_;  // written between two snapshots
  uint64_t clock_ = 0, snapshot_at_ = 0;
  PathView seen_;                 // of the page placed last
  Tokens<kPathTokens> tokens_{};  // of seen_
  float lifetime_ = 0;            // of seen_, by weights_
};

}  // namespace streamfs::learning
