// The online hashed logistic model ("OHL") predicts how long a page will live from its place in its
// request, its own history and the lifetimes of the pages around it.
//
// A prediction is a lifetime on the axis of landmarks.h; classes.h cuts it into classes. The clock
// counts pages written.
// Thread safety: none. Crash: memory only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learning/landmark_trainer.h"
#include "learning/landmarks.h"
#include "learning/page_history.h"
#include "learning/regions.h"
#include "learning/request.h"
#include "learning/runs.h"
#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {

class LifetimeModel {
 public:
  // `live_pages`: pages live at once when the device is as full as it will be.
  // `history_bytes`: bound on the memory of the pages' history (page_history.h).
  LifetimeModel(uint64_t device_pages, uint64_t live_pages,
                size_t history_bytes = PageHistory::kBytesMax);

  // Counts each page of the request and calls place(lifetime, follows) for it. `lifetime` is
  // predicted from the state before the page; `follows`: the page is not the first of its request.
  // The model learns from the pages that Request::teaches() chooses. A page beyond the device gets
  // the longest lifetime and is not counted.
  template <typename Place>
  void write(const Request& request, const Place& place) {
    begin(request);
    for (uint32_t i = 0; i < request.pages; ++i) {
      place(write_page(request, i), request.offset + i > 0);
    }
  }
  // Ends the lives of these pages. Pages beyond the device are left out.
  void trim(uint64_t page, uint64_t pages);

  // Returns the view of the page for which place() is being called. A page beyond the device has
  // none; the view is then that of an earlier page.
  const WriteView& seen() const { return seen_; }
  uint64_t clock() const { return clock_; }
  const Landmarks& landmarks() const { return landmarks_; }

 private:
  void begin(const Request& request);
  float write_page(const Request& request, uint32_t index);
  WriteView view(const Request& request, uint32_t index) const;
  void end_life(uint64_t page, PageLife& life, PageHistory::Group& group, uint8_t trim_length);

  PageHistory pages_;
  Regions regions_;
  Runs runs_;
  RunPlace run_;  // of the request at hand
  WriteView seen_;
  Landmarks landmarks_;
  LandmarkTrainer<kHistoryTokens> trainer_;
  uint64_t clock_ = 0;
};

}  // namespace streamfs::learning
