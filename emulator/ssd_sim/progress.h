// A progress bar on standard error, only where that is a terminal.
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "emulator/replay/workload.h"

namespace streamfs::emulator::ssd_sim {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void set_label(std::string label) { label_ = std::move(label); }
  void show(uint64_t done, uint64_t of);  // of 0: not known
  void clear();                           // before anything else is printed
  // Calls show(); empty where there is no terminal. Borrows this.
  Progress callback();

 private:
  const bool on_;
  bool shown_ = false;
  std::string label_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace streamfs::emulator::ssd_sim
