#include "fuse-fs/frontend/comm_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/mutex.h"

namespace streamfs::frontend {

std::string CommCache::comm_of(pid_t thread) {
  if (thread <= 0) return {};
  const uint64_t now_ms = clock_.monotonic_ms();
  Slot& slot = slots_[static_cast<size_t>(thread) % kSlots];
  const MutexLock lock(slot.mutex);
  if (slot.thread != thread || now_ms - slot.read_ms >= kValidMs) {
    slot.thread = thread;
    slot.read_ms = now_ms;
    slot.comm = read_comm(thread);
  }
  return slot.comm;
}

std::string CommCache::read_comm(pid_t thread) const {
  const int fd = open(fmt::format("{}/{}/comm", proc_, thread).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::array<char, 64> text{};
  const ssize_t length = read(fd, text.data(), text.size());
  close(fd);
  if (length <= 0) return {};
  std::string comm(text.data(), static_cast<size_t>(length));
  if (comm.back() == '\n') comm.pop_back();
  return comm;
}

}  // namespace streamfs::frontend
