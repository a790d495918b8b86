// The online hashed logistic model ("OHL"): how long will this page live, judged by its place in
// its request, its own history and what lies around it?
//
// The answer is a lifetime on the axis of landmarks.h; classes.h cuts it. The clock counts pages
// written.
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
  uint32_t whole_pages = 0;  // of the request
  uint32_t offset = 0;       // of this part in it
  uint16_t vstream = 0;
  uint8_t age = 0;  // class of what it overwrites (base/wire/model_table.h)
  // What a life table expects of the vStream: a row by shape (base/wire/model_table.h) of half_log2
  // lifetimes plus one, 0 standing for "not known". Empty: nothing is known.
  std::span<const uint8_t> expected = {};
};

class LifetimeModel {
 public:
  // `live_pages`: what is live at once when the device is as full as it will be.
  // `history_bytes`: what the pages' history may take (page_history.h).
  LifetimeModel(uint64_t device_pages, uint64_t live_pages,
                size_t history_bytes = PageHistory::kBytesMax);

  // Calls place(lifetime, follows) for each page, as what was known before it says, then learns
  // from it; `follows`: it is not the first of its request. What does not lie on the device lives
  // longest and teaches nothing.
  template <typename Place>
  void write(const Request& request, const Place& place) {
    begin(request);
    for (uint32_t i = 0; i < request.pages; ++i) {
      place(write_page(request, i), request.offset + i > 0);
    }
  }
  void trim(uint64_t page, uint64_t pages);

  // What was known of the page that was placed last; for place() to ask.
  const WriteView& seen() const { return seen_; }
  uint64_t clock() const { return clock_; }
  const Landmarks& landmarks() const { return landmarks_; }

 private:
  // Of writes that wait for landmarks no more than this many are kept: one in so many of all.
  static constexpr uint64_t kWaitingMax = 1U << 18;
  static constexpr uint64_t kInnerOneIn = 16;  // pages
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
  uint64_t every_;  // this many writes, one waits
  uint64_t clock_ = 0;
  std::deque<Waiting> waiting_;  // oldest first
  uint64_t first_waiting_ = 0;   // the number of the oldest, counted from the first ever
  std::array<uint64_t, kLandmarks> trained_{};  // by landmark: writes that reached it
};

}  // namespace streamfs::learning
