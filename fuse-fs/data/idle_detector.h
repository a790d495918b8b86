// Detects idle time. Programs are idle once they made no request for the wanted time, at first half
// a second. When a request ends the idle time, the detector adapts the wanted time. If the idle
// time itself, after the wait for it, was shorter than the wanted time, the wanted time doubles;
// otherwise it halves. Short gaps between bursts therefore soon stop counting as idle.
// Thread safety: one thread. After a crash: memory only.
#pragma once

#include <algorithm>
#include <cstdint>

namespace streamfs::data {

class IdleDetector {
 public:
  static constexpr uint64_t kQuietMsLeast = 500, kQuietMsMost = 8000;

  // Call it regularly, with the count of requests begun and whether one is under way. Returns
  // whether programs are idle.
  bool look(uint64_t now_ms, uint64_t begun, bool under_way) {
    if (under_way || begun != seen_) {
      if (idle_) adapt(now_ms - idle_since_ms_);
      idle_ = false;
      seen_ = begun;
      quiet_since_ms_ = now_ms;
    } else if (!idle_ && now_ms - quiet_since_ms_ >= wanted_ms_) {
      idle_ = true;
      idle_since_ms_ = now_ms;
    }
    return idle_;
  }

 private:
  void adapt(uint64_t idle_ms) {
    wanted_ms_ = idle_ms < wanted_ms_ ? std::min(2 * wanted_ms_, kQuietMsMost)
                                      : std::max(wanted_ms_ / 2, kQuietMsLeast);
  }

  uint64_t seen_ = UINT64_MAX, quiet_since_ms_ = 0, idle_since_ms_ = 0;
  uint64_t wanted_ms_ = kQuietMsLeast;
  bool idle_ = false;
};

}  // namespace streamfs::data
