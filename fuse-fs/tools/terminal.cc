#include "fuse-fs/tools/terminal.h"

#include <curses.h>
#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace streamfs::tools {

Result<void> Terminal::usable() {
  const char* type = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const bool known = type != nullptr && *type != '\0' && std::string_view(type) != "dumb";
  if (known && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) return {};
  return Error{ENOTTY, "standard input and output"};
}

Terminal::Terminal() {
  setlocale(LC_CTYPE, "");  // NOLINT(concurrency-mt-unsafe): one thread
  screen_ = newterm(nullptr, stdout, stdin);
  if (screen_ == nullptr) throw std::runtime_error("the terminal cannot be drawn on; use --batch");
  cbreak();
  noecho();
  curs_set(0);
  keypad(stdscr, TRUE);
}

Terminal::~Terminal() {
  endwin();
  delscreen(static_cast<SCREEN*>(screen_));
}

void Terminal::draw(const std::vector<Line>& lines) {
  erase();
  const auto most = static_cast<size_t>(std::max(0, getmaxy(stdscr)));
  for (size_t at = 0; at < std::min(most, lines.size()); ++at) {
    if (lines[at].title) attron(A_BOLD);
    mvaddnstr(static_cast<int>(at), 0, lines[at].text.c_str(), getmaxx(stdscr));
    if (lines[at].title) attroff(A_BOLD);
  }
  refresh();
}

Terminal::Key Terminal::wait(std::chrono::milliseconds longest) {
  timeout(static_cast<int>(longest.count()));
  switch (getch()) {
    case ERR:
      return Key::kNone;
    case KEY_RESIZE:
      return Key::kResized;
    case 'q':
    case 'Q':
      return Key::kQuit;
    case ' ':
      return Key::kPause;
    default:
      return Key::kOther;
  }
}

}  // namespace streamfs::tools
