// The online hashed logistic model ("OHL") predicts how long a page will live from its place in its
// request, its own history and the lifetimes of the pages around it.
//
// A prediction is a lifetime on the axis of landmarks.h; classes.h cuts it into classes. The clock
// counts pages written.
// Thread safety: none. Crash: memory only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "learning/landmarks.h"
#include "learning/logistic.h"
#include "learning/page_history.h"
#include "learning/regions.h"
#include "learning/runs.h"
#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {

// A request as the filesystem got it, whole or a part of it.
struct Request {
  uint64_t page = 0;  // on the device, of this part
  uint32_t pages = 0;
  uint32_t whole_pages = 0;  // of the whole request
  uint32_t offset = 0;       // of this part in the request, pages
  uint16_t vstream = 0;
  uint8_t age = 0;  // age class of the overwritten data (base/wire/model_table.h)
  // The life table's row for the vStream: by shape (base/wire/model_table.h), half_log2 of the
  // expected lifetime plus one, or 0 if unknown. Empty: no row.
  std::span<const uint8_t> expected = {};
};

class LifetimeModel {
 public:
  // `live_pages`: pages live at once when the device is as full as it will be.
  // `history_bytes`: bound on the memory of the pages' history (page_history.h).
  LifetimeModel(uint64_t device_pages, uint64_t live_pages,
                size_t history_bytes = PageHistory::kBytesMax);

  // Learns from each page of the request and calls place(lifetime, follows) for it. `lifetime` is
  // predicted from what was known before the page; `follows`: the page is not the first of its
  // request. A page beyond the device gets the longest lifetime and teaches nothing.
  template <typename Place>
  void write(const Request& request, const Place& place) {
    begin(request);
    for (uint32_t i = 0; i < request.pages; ++i) {
      place(write_page(request, i), request.offset + i > 0);
    }
  }
  void trim(uint64_t page, uint64_t pages);

  // Returns the view from which the last page on the device was predicted. Meant for place().
  const WriteView& seen() const { return seen_; }
  uint64_t clock() const { return clock_; }
  const Landmarks& landmarks() const { return landmarks_; }

 private:
  // Bound on waiting_. If more writes are younger than the last landmark, one in every_ is kept.
  static constexpr uint64_t kWaitingMax = 1U << 18;
  static constexpr uint64_t kInnerOneIn = 16;  // one in so many inner pages of a request teaches
  struct Waiting {
    Tokens tokens;
    uint64_t page;
    uint64_t clock;
  };
  void begin(const Request& request);
  float write_page(const Request& request, uint32_t index);
  WriteView view(const Request& request, uint32_t index) const;
  bool teaches(const Request& request, uint32_t index) const;
  void end_life(uint64_t page, PageLife& life, PageHistory::Group& group, uint8_t trim_length);
  bool lives(const Waiting& write) const;
  void train();

  PageHistory pages_;
  Regions regions_;
  Runs runs_;
  RunPlace run_;  // of the request at hand
  WriteView seen_;
  Logistic logistic_;
  Landmarks landmarks_;
  uint64_t every_;  // one write in so many may teach
  uint64_t clock_ = 0;
  std::deque<Waiting> waiting_;  // writes that have not reached every landmark, oldest first
  uint64_t first_waiting_ = 0;   // number of the oldest, counted from the first ever
  std::array<uint64_t, kLandmarks> trained_{};  // by landmark: number of the next write to train
};

}  // namespace streamfs::learning
