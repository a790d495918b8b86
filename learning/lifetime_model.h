// The online hashed logistic model ("OHL"): how long will this page live, judged by its place in
// its request, its own history and what lies around it?
//
// Classes are cut by landmarks, ages that are parts of what is live: C ÷ 2^9 to C ÷ 2. A write's
// class is how many of them it is expected to reach. The clock counts pages written.
// Thread safety: none. Crash: memory only.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

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
};

class LifetimeModel {
 public:
  // `live_pages`: what is live at once when the device is as full as it will be.
  LifetimeModel(uint64_t device_pages, uint64_t live_pages, uint32_t classes);

  uint32_t classes() const { return static_cast<uint32_t>(landmarks_.size()) + 1; }
  // Calls place(class) for each page, as what was known before it says; then learns from it.
  // What does not lie on the device gets the last class and teaches nothing.
  template <typename Place>
  void write(const Request& request, const Place& place) {
    begin(request);
    for (uint32_t i = 0; i < request.pages; ++i) place(write_page(request, i));
  }
  void trim(uint64_t page, uint64_t pages);

  uint64_t clock() const { return clock_; }
  const std::vector<uint64_t>& landmarks() const { return landmarks_; }

 private:
  // Of writes that wait for landmarks no more than this many are kept: one in so many of all.
  static constexpr uint64_t kWaitingMax = 1U << 18;
  static constexpr float kDoubt = 1;           // log odds
  static constexpr uint64_t kInnerOneIn = 16;  // pages
  struct Waiting {
    Tokens tokens;
    uint64_t page;
    uint64_t clock;
  };
  void begin(const Request& request);
  uint32_t write_page(const Request& request, uint32_t index);
  WriteView view(const Request& request, uint32_t index) const;
  uint32_t class_of(const Scores& scores, bool follows);
  bool teaches(const Request& request, uint32_t index) const;
  void end_life(uint64_t page, PageLife& life, uint8_t trim_length);
  bool lives(const Waiting& write) const;
  void train();

  PageHistory pages_;
  Regions regions_;
  Runs runs_;
  RunPlace run_;             // of the request at hand
  uint32_t last_class_ = 0;  // of its page before
  Logistic logistic_;
  std::vector<uint64_t> landmarks_;  // ascending
  uint64_t every_ = 1;               // this many writes, one waits
  uint64_t clock_ = 0;
  std::deque<Waiting> waiting_;    // oldest first
  uint64_t first_waiting_ = 0;     // the number of the oldest, counted from the first ever
  std::vector<uint64_t> trained_;  // by landmark: writes that reached it
};

}  // namespace streamfs::learning
