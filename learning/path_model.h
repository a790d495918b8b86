// Learns the logistic model that the filesystem can evaluate when it places a write: its features
// are the request, the place, the vStream and the age class of the overwritten data (PathView).
//
// Predictions use the weights of the last snapshot, as a filesystem does to which snapshots are
// published. Thread safety: none. Crash: memory only.
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

PathView path_view(const Request& request, uint32_t index);

class PathModel {
 public:
  // `live_pages`: pages live at once when the device is as full as it will be.
  // `history_bytes`: bound on the memory that knows which pages live (page_history.h).
  PathModel(uint64_t device_pages, uint64_t live_pages,
            size_t history_bytes = PageHistory::kBytesMax);

  // Calls place(lifetime, follows) for each page of the request and learns from it. `lifetime` is
  // on the landmarks' axis; `follows`: Request::follows().
  template <typename Place>
  void write(const Request& request, const Place& place) {
    for (uint32_t i = 0; i < request.pages; ++i) {
      const bool follows = request.follows(i, before_);
      before_ = request.page + i;
      place(write_page(request, i), follows);
    }
  }
  void trim(uint64_t page, uint64_t pages);
  // Takes a snapshot: later predictions use the weights learned so far.
  void snapshot();

  uint64_t clock() const { return clock_; }
  const Landmarks& landmarks() const { return landmarks_; }
  const PathWeights& weights() const { return weights_; }
  // The weights and the squared gradients of the model that is learning.
  const Logistic<kPathTokens>& learned() const { return trainer_.model(); }
  // Continues with what another model had learned, and takes a snapshot.
  void restore(Logistic<kPathTokens> learned);

 private:
  float write_page(const Request& request, uint32_t index);

  PageHistory pages_;
  Landmarks landmarks_;
  LandmarkTrainer<kPathTokens> trainer_;
  PathWeights weights_;  // of the last snapshot
  uint64_t clock_ = 0;
  uint64_t before_ = kNoPage;     // the page placed last
  PathView seen_;                 // of a page placed lately
  Tokens<kPathTokens> tokens_{};  // of seen_
  float lifetime_ = 0;            // of seen_, by weights_
};

}  // namespace streamfs::learning
