// Chooses how requests come from the kernel: over io_uring or through /dev/fuse.
//
// Over io_uring the kernel has a queue for each possible processor. It sends requests once every
// queue has an entry to receive one, offline processors' queues too. libfuse makes the queues, each
// with a thread and a buffer for each entry.
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace streamfs::frontend {

enum class Transport : unsigned char {
  kAuto,       // io_uring if it is available, else /dev/fuse
  kIoUring,    // io_uring, or the mount fails
  kPreferred,  // as kAuto, and the log warns whenever io_uring is unavailable
  kDev,        // /dev/fuse
};

// The entries of a queue bound the requests of one processor that are in hand. Its others wait in
// the kernel.
inline constexpr unsigned kQueueEntries = 16, kQueueEntriesLeast = 8;

// The facts of a machine on which FUSE over io_uring depends.
struct RingHost {
  enum class Switch : unsigned char { kMissing, kOff, kOn };
  Switch enabled = Switch::kMissing;  // the kernel's parameter enable_uring
  unsigned possible_cpus = 0;         // queues that the kernel waits for; 0: not known
  unsigned online_cpus = 0;
  unsigned queues = 0;        // libfuse makes so many
  uint64_t memory_bytes = 0;  // the machine's, or the control group's if that is less
  std::string refusal;        // why this process can open no ring; empty: it can
};
// Opens a ring for a test. `root` replaces "/" for files under /sys and /proc; physical memory, the
// number of queues and the test ring are always this machine's.
RingHost look_at_host(const std::filesystem::path& root = "/");
// Returns the most memory that the queues take: buffers for each online processor, and a thread and
// a ring for each possible one.
uint64_t ring_bytes(const RingHost& host, unsigned entries);
// Returns kQueueEntries if the memory is enough for them, else kQueueEntriesLeast.
unsigned queue_entries(const RingHost& host);
// Returns why requests cannot come over io_uring, for an administrator; "" if they can.
std::string why_no_io_uring(const RingHost& host);

struct TransportChoice {
  bool io_uring = false;
  std::string why;       // for an administrator
  unsigned entries = 0;  // of each queue; 0 over /dev/fuse
};
// Chooses, and logs the reason if kAuto or kPreferred falls back to /dev/fuse. If `enable`, first
// switches the kernel's parameter on, for all FUSE servers and until the next boot.
// Errors: ENOPROTOOPT if kIoUring is unavailable. The message gives the reason and, if only
// enable_uring is off, how to switch it on.
Result<TransportChoice> choose_transport(Transport wanted, bool enable,
                                         const std::filesystem::path& root = "/");
// Returns the choice after libfuse got no rings. Errors: as choose_transport().
Result<TransportChoice> without_rings(Transport wanted);
// "io_uring" or "/dev/fuse".
const char* to_string(const TransportChoice& choice);

}  // namespace streamfs::frontend
