// A terminal's whole screen, by ncurses: lines are drawn, keys are read, and it is as it was
// afterwards.
// Thread safety: one at a time in a process, on one thread. A crash leaves the terminal as it is;
// reset(1) mends it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace streamfs::tools {

class Terminal {
 public:
  struct Line {
    std::string text;
    bool title = false;
  };
  enum class Key : unsigned char { kNone, kQuit, kPause, kResized, kOther };

  // ENOTTY: standard output or input is no terminal that can be drawn on.
  static Result<void> usable();
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // What does not fit is cut off.
  void draw(const std::vector<Line>& lines);
  Key wait(std::chrono::milliseconds longest);

 private:
  void* screen_;  // ncurses' SCREEN
};

}  // namespace streamfs::tools
