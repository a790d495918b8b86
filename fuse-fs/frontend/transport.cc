#include "fuse-fs/frontend/transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include "base/human_bytes.h"
#include "base/result.h"
#include "fuse-fs/frontend/connection.h"
#include "fuse-fs/uring/ring.h"

namespace streamfs::frontend {
namespace {

using std::filesystem::path;

constexpr const char* kSwitch = "sys/module/fuse/parameters/enable_uring";
constexpr const char* kHowToAllow =
    "as root, run `echo Y >/sys/module/fuse/parameters/enable_uring`, or boot with "
    "fuse.enable_uring=1";
constexpr uint64_t kHeaderBytes = 4096;      // beside each payload, in pages of its own
constexpr uint64_t kQueueBytes = 64 * 1024;  // a queue's thread and ring, in use or not
constexpr uint64_t kMemoryShare = 16;        // the buffers may take this part of the memory

std::string text_of(const path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Counts the processors of a list such as "0-3,8". 0: not such a list.
unsigned count_cpus(const std::string& list) {
  unsigned count = 0;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    unsigned first = 0;
    const char* const end = range.data() + range.size();
    const auto [stop, failed] = std::from_chars(range.data(), end, first);
    if (failed != std::errc{}) return 0;
    unsigned last = first;
    if (stop != end && *stop == '-') std::from_chars(stop + 1, end, last);
    if (last < first) return 0;
    count += last - first + 1;
  }
  return count;
}

// Returns the least memory.max of this process's control group and those above it.
uint64_t control_group_bytes(const path& root) {
  uint64_t least = UINT64_MAX;
  std::istringstream groups(text_of(root / "proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    const path top = root / "sys/fs/cgroup";
    for (path group = top / line.substr(4); group.native().size() >= top.native().size();
         group = group.parent_path()) {
      const std::string most = text_of(group / "memory.max");
      uint64_t bytes = 0;
      const auto [stop, failed] = std::from_chars(most.data(), most.data() + most.size(), bytes);
      if (failed == std::errc{}) least = std::min(least, bytes);  // else "max", or no such file
    }
  }
  return least;
}

RingHost::Switch switch_of(const path& root) {
  const std::string text = text_of(root / kSwitch);
  if (text.empty()) return RingHost::Switch::kMissing;
  return text.front() == 'Y' ? RingHost::Switch::kOn : RingHost::Switch::kOff;
}

void switch_on(const path& root) {
  const int fd = open((root / kSwitch).c_str(), O_WRONLY | O_CLOEXEC);
  const bool done = fd >= 0 && write(fd, "Y\n", 2) == 2;
  const std::error_code failed(errno, std::generic_category());
  if (fd >= 0) close(fd);
  if (!done) spdlog::warn("enable_uring: {} cannot be set: {}", kSwitch, failed.message());
}

// Loads the kernel's module, which has the parameter.
void load_fuse() {
  const int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fd >= 0) close(fd);
}

bool fits(const RingHost& host, unsigned entries) {
  return ring_bytes(host, entries) <= host.memory_bytes / kMemoryShare;
}

// Logs why requests come through /dev/fuse. A kernel that only has to be told is worth a warning.
Result<TransportChoice> refused(Transport wanted, const std::string& why, bool warns) {
  if (wanted == Transport::kIoUring) return Error{ENOPROTOOPT, "transport=io_uring: " + why};
  const auto level = warns || wanted == Transport::kPreferred ? spdlog::level::warn  //
                                                              : spdlog::level::info;
  spdlog::log(level, "requests come through /dev/fuse: {}", why);
  return TransportChoice{false, why, 0};
}

}  // namespace

RingHost look_at_host(const path& root) {
  RingHost out;
  out.enabled = switch_of(root);
  out.possible_cpus = count_cpus(text_of(root / "sys/devices/system/cpu/possible"));
  out.online_cpus = count_cpus(text_of(root / "sys/devices/system/cpu/online"));
  out.queues = static_cast<unsigned>(get_nprocs_conf());
  out.memory_bytes = std::min(
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(getpagesize()),
      control_group_bytes(root));
  if (const auto ring = uring::Ring::open(1); !ring) out.refusal = ring.error().message();
  return out;
}

uint64_t ring_bytes(const RingHost& host, unsigned entries) {
  constexpr uint64_t kEntryBytes = kRequestBytes + kHeaderBytes;
  return host.online_cpus * entries * kEntryBytes + host.possible_cpus * kQueueBytes;
}

unsigned queue_entries(const RingHost& host) {
  return fits(host, kQueueEntries) ? kQueueEntries : kQueueEntriesLeast;
}

std::string why_no_io_uring(const RingHost& host) {
#ifndef STREAMFS_FUSE_IO_URING
  return "the libfuse of this build has no io_uring (it needs 3.18)";
#endif
  if (host.possible_cpus == 0)
    return "the number of CPUs is not known: /sys/devices/system/cpu/possible cannot be read";
  if (host.enabled == RingHost::Switch::kMissing)
    return "this kernel has no FUSE over io_uring (it needs Linux 6.14)";
  if (host.enabled == RingHost::Switch::kOff)
    return fmt::format("FUSE over io_uring is off in this kernel; to allow it, {}", kHowToAllow);
  if (!host.refusal.empty()) return host.refusal;
  if (host.queues != host.possible_cpus)
    return fmt::format("libfuse makes {} queues, and the kernel waits for {}", host.queues,
                       host.possible_cpus);
  if (!fits(host, kQueueEntriesLeast))
    return fmt::format("buffers of {} for {} CPUs are more than 1/{} of the memory ({})",
                       human_bytes(ring_bytes(host, kQueueEntriesLeast)), host.online_cpus,
                       kMemoryShare, human_bytes(host.memory_bytes));
  return "";
}

Result<TransportChoice> choose_transport(Transport wanted, bool enable, const path& root) {
  if (wanted == Transport::kDev) return TransportChoice{false, "transport=dev", 0};
  load_fuse();
  if (enable && switch_of(root) == RingHost::Switch::kOff) switch_on(root);
  const RingHost host = look_at_host(root);
  const std::string why = why_no_io_uring(host);
  if (!why.empty()) return refused(wanted, why, host.enabled == RingHost::Switch::kOff);
  return TransportChoice{
      true, wanted == Transport::kIoUring ? "transport=io_uring" : "offered by the kernel",
      queue_entries(host)};
}

Result<TransportChoice> without_rings(Transport wanted) {
  return refused(wanted, "libfuse could not start its rings; its messages in the log say why",
                 true);
}

const char* to_string(const TransportChoice& choice) {
  return choice.io_uring ? "io_uring" : "/dev/fuse";
}

}  // namespace streamfs::frontend
