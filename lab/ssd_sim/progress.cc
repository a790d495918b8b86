#include "lab/ssd_sim/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "lab/replay/workload.h"

namespace streamfs::lab::ssd_sim {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLine = std::chrono::seconds(10);  // without a terminal
constexpr uint64_t kWidth = 30;

}  // namespace

ProgressBar::ProgressBar()
    : terminal_(isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + (terminal_ ? kRedraw : kLine)) {}

void ProgressBar::show(uint64_t done, uint64_t of) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? kRedraw : kLine);
  if (!terminal_) {
    const std::string label = label_.empty() ? "" : label_ + ": ";
    if (of == 0)
      fmt::print(stderr, "ssd-sim: {}{:.1f} M pages\n", label, static_cast<double>(done) / 1e6);
    else
      fmt::print(stderr, "ssd-sim: {}{} %\n", label, done * 100 / of);
    return;
  }
  shown_ = true;
  if (of == 0) {
    fmt::print(stderr, "\r\x1b[K{} {:.1f} M pages", label_, static_cast<double>(done) / 1e6);
  } else {
    const uint64_t full = std::min(done, of) * kWidth / of;
    fmt::print(stderr, "\r\x1b[K{} [{}{}] {:3} %", label_, std::string(full, '#'),
               std::string(kWidth - full, '.'), done * 100 / of);
  }
  (void)fflush(stderr);
}

void ProgressBar::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  (void)fflush(stderr);
  shown_ = false;
}

Progress ProgressBar::callback() {
  return [this](uint64_t done, uint64_t of) { show(done, of); };
}

}  // namespace streamfs::lab::ssd_sim
