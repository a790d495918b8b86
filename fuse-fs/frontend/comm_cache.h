// Caches the name (comm) of the thread that creates a file, for placement's contexts. Reading it
// from /proc costs as much as the create itself, so a name is remembered for a few milliseconds:
// long enough for a burst of creates, too short for a forked shell to pass for the program that it
// becomes.
// Thread safety: any thread may call any method.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace streamfs::frontend {

class CommCache {
 public:
  explicit CommCache(Clock& clock, std::string proc = "/proc")
      : clock_(clock), proc_(std::move(proc)) {}
  std::string comm_of(pid_t thread);  // empty: the thread is gone, or its name may not be read

 private:
  static constexpr uint64_t kValidMs = 20;
  static constexpr size_t kSlots = 256;
  struct Slot {
    Mutex mutex;  // leaf
    pid_t thread SFS_GUARDED_BY(mutex) = 0;
    uint64_t read_ms SFS_GUARDED_BY(mutex) = 0;
    std::string comm SFS_GUARDED_BY(mutex);
  };
  std::string read_comm(pid_t thread) const;
  Clock& clock_;
  const std::string proc_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace streamfs::frontend
