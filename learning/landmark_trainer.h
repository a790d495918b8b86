// Trains a logistic model. A page write is kept until it is as old as the last landmark. At the age
// of each landmark, the model learns whether the page's data is still alive. To bound memory, only
// one write in every_ is kept if the last landmark is kWaitingMax pages or more.
// Thread safety: none. Crash: memory only.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>

#include "learning/landmarks.h"
#include "learning/logistic.h"
#include "learning/tokens.h"

namespace streamfs::learning {

template <uint32_t kCount>
class LandmarkTrainer {
 public:
  explicit LandmarkTrainer(const Landmarks& landmarks)
      : landmarks_(landmarks), every_(landmarks.ages().back() / kWaitingMax + 1) {}

  // Keeps a write of `page` at `clock`, in pages written, or leaves it out of the sample.
  void add(const Tokens<kCount>& tokens, uint64_t page, uint64_t clock) {
    if (clock % every_ == 0) waiting_.push_back({tokens, page, clock});
  }
  // Trains with the writes that have reached a landmark at `clock`. lives(page, clock): whether the
  // data that was written to `page` at `clock` is alive.
  template <typename Lives>
  void train(uint64_t clock, const Lives& lives) {
    for (uint32_t j = 0; j < kLandmarks; ++j) {
      uint64_t& next = trained_[j];
      for (; next < first_waiting_ + waiting_.size(); ++next) {
        const Waiting& write = waiting_[next - first_waiting_];
        if (clock - write.clock < landmarks_.ages()[j]) break;
        model_.train(j, write.tokens, lives(write.page, write.clock));
      }
    }
    while (!waiting_.empty() && trained_.back() > first_waiting_) {
      waiting_.pop_front();
      ++first_waiting_;
    }
  }
  const Logistic<kCount>& model() const { return model_; }
  void restore(Logistic<kCount> model) { model_ = std::move(model); }

 private:
  static constexpr uint64_t kWaitingMax = 1U << 18;  // bound on waiting_
  struct Waiting {
    Tokens<kCount> tokens;
    uint64_t page;
    uint64_t clock;
  };

  Logistic<kCount> model_;
  const Landmarks landmarks_;
  const uint64_t every_;         // one write in this many is kept
  std::deque<Waiting> waiting_;  // writes that have not reached every landmark, oldest first
  uint64_t first_waiting_ = 0;   // number of the oldest, counted from the first ever
  std::array<uint64_t, kLandmarks> trained_{};  // by landmark: number of the next write to train
};

}  // namespace streamfs::learning
