#include "fuse-fs/frontend/fuse_log.h"

#include <fuse_log.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace streamfs::frontend {
namespace {

struct Capture {
  Mutex mutex;  // leaf
  std::optional<std::string> first SFS_GUARDED_BY(mutex);
};

Capture& capture() {
  static Capture kept;
  return kept;
}

spdlog::level::level_enum level_of(fuse_log_level level) {
  if (level <= FUSE_LOG_ERR) return spdlog::level::err;
  if (level <= FUSE_LOG_WARNING) return spdlog::level::warn;
  return level <= FUSE_LOG_INFO ? spdlog::level::info : spdlog::level::debug;
}

__attribute__((format(printf, 2, 0))) void take(fuse_log_level level, const char* format,
                                                va_list arguments) {
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  std::string message(text.data());
  while (!message.empty() && message.back() == '\n') message.pop_back();
  {
    const MutexLock lock(capture().mutex);
    if (std::optional<std::string>& first = capture().first; first.has_value()) {
      if (first->empty()) *first = std::move(message);
      return;
    }
  }
  spdlog::log(level_of(level), "{}", message);
}

}  // namespace

void route_fuse_log() {
  fuse_set_log_func(take);
}

void begin_capture() {
  const MutexLock lock(capture().mutex);
  capture().first.emplace();
}

std::string end_capture() {
  const MutexLock lock(capture().mutex);
  std::string first = capture().first.value_or(std::string{});
  capture().first.reset();
  return first;
}

}  // namespace streamfs::frontend
