// Learns the logistic model that the filesystem can evaluate when it places a write: its features
// are the request, the place, the vStream and the age class of the overwritten data (PathView).
//
// Predictions use the weights of the last snapshot, because the filesystem has only the snapshots
// that are published.
// Thread safety: none. Crash: memory only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learning/landmark_trainer.h"
#include "learning/landmarks.h"
#include "learning/logistic.h"
#include "learning/page_history.h"
#include "learning/path_weights.h"
#include "learning/request.h"
#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {

// Returns the features of the page at `index` of this part of the request.
PathView path_view(const Request& request, uint32_t index);

class PathModel {
 public:
  // `live_pages`: pages live at once when the device is as full as it will be.
  // `history_bytes`: bound on the memory of the pages' history (page_history.h).
  PathModel(uint64_t device_pages, uint64_t live_pages,
            size_t history_bytes = PageHistory::kBytesMax);

  // Counts each page of the request and calls place(lifetime, follows) for it. `lifetime` is on the
  // landmarks' axis; `follows`: Request::follows(). The model learns from the pages that
  // Request::teaches() chooses. A page beyond the device gets the longest lifetime and is not
  // counted.
  template <typename Place>
  void write(const Request& request, const Place& place) {
    for (uint32_t i = 0; i < request.pages; ++i) {
      const bool follows = request.follows(i, before_);
      before_ = request.page + i;
      place(write_page(request, i), follows);
    }
  }
  // Ends the lives of these pages. Pages beyond the device are left out.
  void trim(uint64_t page, uint64_t pages);
  // Takes a snapshot: later predictions use the weights learned so far.
  void snapshot();

  uint64_t clock() const { return clock_; }
  const Landmarks& landmarks() const { return landmarks_; }
  const PathWeights& weights() const { return weights_; }
  // The weights and the squared gradients of the model that is learning.
  const Logistic<kPathTokens>& learned() const { return trainer_.model(); }
  // Replaces the learned weights by those of another model, and takes a snapshot.
  void restore(Logistic<kPathTokens> learned);

 private:
  float write_page(const Request& request, uint32_t index);

  PageHistory pages_;
  Landmarks landmarks_;
  LandmarkTrainer<kPathTokens> trainer_;
  PathWeights weights_;  // of the last snapshot
  uint64_t clock_ = 0;
  uint64_t before_ = kNoPage;     // the page placed last
  PathView seen_;                 // of the last page whose tokens were computed
  Tokens<kPathTokens> tokens_{};  // of seen_
  float lifetime_ = 0;            // of seen_, by weights_
};

}  // namespace streamfs::learning
