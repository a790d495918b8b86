// Locks a device, and waits for another holder of it.
// Thread safety: any thread. Both functions block the caller, for up to `wait_seconds`.
// Crash: the kernel drops the locks of a dead process.
#pragma once

#include <sys/file.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/holder.h"
#include "base/result.h"

namespace streamfs::blockdev {

// Calls `attempt` every 20 ms until it succeeds, fails with an error other than EBUSY, or
// `wait_seconds` have passed. Returns its last result.
template <typename Attempt>
auto retry_while_busy(double wait_seconds, Attempt attempt) -> decltype(attempt()) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPause = std::chrono::milliseconds(20);
  const auto deadline = Clock::now() + std::chrono::duration<double>(wait_seconds);
  for (;;) {
    auto result = attempt();
    if (result.ok() || result.error().code != EBUSY || Clock::now() >= deadline) return result;
    std::this_thread::sleep_for(kPause);
  }
}

// Takes an exclusive flock(2), which udev and other tools respect. The lock belongs to the open
// file and ends when its last descriptor is closed. Errors: EBUSY; those of flock(2).
inline Result<void> lock_exclusively(int fd, const std::string& path, double wait_seconds) {
  return retry_while_busy(wait_seconds, [&]() -> Result<void> {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK && errno != EINTR) return Error{errno, "cannot lock " + path};
    return Error{EBUSY, path + " is in use by " + lock_holder(fd)};
  });
}

}  // namespace streamfs::blockdev
