// Draws lines on a terminal's whole screen and reads keys, by ncurses. The destructor restores the
// screen.
// Thread safety: one object at a time in a process, on one thread.
// After a crash: the terminal stays as it is; reset(1) mends it.
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

  // Errors: ENOTTY, standard output or input is no terminal, or TERM names none that can be drawn
  // on.
  static Result<void> usable();
  // Throws std::runtime_error if ncurses does not know the terminal.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Draws the lines, and cuts off what does not fit.
  void draw(const std::vector<Line>& lines);
  // Waits for a key. Returns kNone if none has come by then.
  Key wait(std::chrono::milliseconds longest);

 private:
  void* screen_;  // ncurses' SCREEN
};

}  // namespace streamfs::tools
