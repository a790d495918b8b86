// A progress bar on standard error. If that is no terminal, one line every 10 s.
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lab/replay/workload.h"

namespace streamfs::lab::ssd_sim {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void set_label(std::string label) { label_ = std::move(label); }
  void show(uint64_t done, uint64_t of);  // requires: done ≤ of, or of is 0 (not known)
  void clear();                           // before anything else is printed
  Progress callback();                    // calls show() on this object, which must outlive it

 private:
  const bool terminal_;
  bool shown_ = false;
  std::string label_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace streamfs::lab::ssd_sim
