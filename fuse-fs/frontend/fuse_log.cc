#include "fuse-fs/frontend/fuse_log.h"

#include <fuse_log.h>
#include <spdlog/spdlog.h>

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"

namespace streamfs::frontend {
namespace {

// libfuse may report a lasting cause, such as that no thread can be started, with every request.
constexpr std::chrono::minutes kQuiet{1};

struct Capture {
  Mutex mutex;  // leaf
  std::optional<std::string> first SFS_GUARDED_BY(mutex);
  std::string last SFS_GUARDED_BY(mutex);
  std::chrono::steady_clock::time_point last_logged SFS_GUARDED_BY(mutex);

  // Returns whether this message was logged within kQuiet, with no other in between.
  bool repeats(const std::string& message) SFS_REQUIRES(mutex) {
    const auto now = std::chrono::steady_clock::now();
    if (message == last && now - last_logged < kQuiet) return true;
    last = message;
    last_logged = now;
    return false;
  }
};

Capture& capture() {
  static Capture kept;
  return kept;
}

// libfuse pins each ring's thread to its processor, and reports an error for every processor that
// is offline or outside this process's cpuset. Such a thread serves its queue from another one.
constexpr std::string_view kUnpinned = "Failed to bind qid=";

spdlog::level::level_enum level_of(fuse_log_level level, std::string_view message) {
  if (message.starts_with(kUnpinned)) return spdlog::level::debug;
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
    if (capture().repeats(message)) return;
  }
  spdlog::log(level_of(level, message), "{}", message);
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
