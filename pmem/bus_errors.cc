#include "pmem/bus_errors.h"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::pmem {
namespace {

// A watched range, as the signal handler reads it. `end` is stored last and cleared first: 0 is a
// free slot.
struct Watched {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<uint64_t> lost{0};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

// These are global, because signals belong to the process.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::array<Watched, 128> watched;
Mutex making;  // leaf
int watches SFS_GUARDED_BY(making) = 0;
struct sigaction before;  // written while there is no watch
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

Watched* find(uintptr_t address) {
  const auto holds = [address](const Watched& each) {
    const uintptr_t end = each.end.load(std::memory_order_acquire);
    return address < end && address >= each.begin.load(std::memory_order_relaxed);
  };
  const auto found = std::ranges::find_if(watched, holds);
  return found == watched.end() ? nullptr : &*found;
}

// Puts words of ones in the place of a lost page. They are filled elsewhere and moved there as a
// whole, so that no other thread sees a state in between.
bool put_ones(uintptr_t address, uint64_t bytes) {
  void* const ones =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ones == MAP_FAILED) return false;
  auto* const words = static_cast<volatile uint64_t*>(ones);
  for (uint64_t i = 0; i < bytes / kWordSize; ++i) words[i] = ~uint64_t{0};
  void* const place =
      reinterpret_cast<void*>(round_down(address, bytes));  // NOLINT(performance-no-int-to-ptr)
  if (mremap(ones, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place) return true;
  munmap(ones, bytes);
  return false;
}

// Replaces the page around an address. A devdax mapping can be split only at its pages, which may
// be large.
bool replace(const Watched& range, uintptr_t address, uint64_t least) {
  for (const uint64_t bytes : {uint64_t{kBlockSize}, uint64_t{2} << 20, uint64_t{1} << 30}) {
    const uintptr_t from = round_down(address, bytes);
    const bool inside = from >= range.begin.load() && from + bytes <= range.end.load();
    if (bytes >= least && inside && put_ones(address, bytes)) return true;
  }
  return false;
}

// Acts as if this handler were not installed: calls the former handler, or ends the process at the
// same instruction. (A signal that a process sent has no instruction, and is sent again.)
void pass_on(int signal, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(signal);
  const bool sent = info->si_code <= 0;
  if (sent && before.sa_handler == SIG_IGN) return;
  struct sigaction system{};
  system.sa_handler = SIG_DFL;
  sigaction(SIGBUS, &system, nullptr);
  if (sent) raise(SIGBUS);
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int old_errno = errno;
  const bool of_medium = info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR ||
                         info->si_code == BUS_MCEERR_AR || info->si_code == BUS_MCEERR_AO;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Watched* const range = of_medium ? find(address) : nullptr;
  if (range != nullptr) {
    const bool memory = info->si_code == BUS_MCEERR_AR || info->si_code == BUS_MCEERR_AO;
    const uint64_t least = memory ? uint64_t{1} << (info->si_addr_lsb & 63) : kBlockSize;
    range->lost.fetch_add(1);  // before the instruction goes on
    if (replace(*range, address, least)) {
      errno = old_errno;
      return;
    }
  }
  errno = old_errno;
  pass_on(signal, info, context);
}

Result<void> install() {
  struct sigaction ours{};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  return sigaction(SIGBUS, &ours, &before) == 0 ? Result<void>() : Error{errno, "sigaction"};
}

// Restores the former handler, unless another one has replaced ours.
void uninstall() {
  struct sigaction now{};
  const bool known = sigaction(SIGBUS, nullptr, &now) == 0;
  if (known && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error)
    sigaction(SIGBUS, &before, nullptr);
}

}  // namespace

Result<BusErrorWatch> BusErrorWatch::over(std::byte* base, uint64_t bytes) {
  const MutexLock lock(making);
  const auto free =
      std::ranges::find_if(watched, [](const Watched& each) { return each.end == 0; });
  if (free == watched.end()) return Error{ENOMEM, "too many META are mapped"};
  if (watches == 0) SFS_TRY(install());
  ++watches;
  const auto begin = reinterpret_cast<uintptr_t>(base);
  free->lost = 0;
  free->begin = begin;
  free->end.store(begin + bytes, std::memory_order_release);
  return BusErrorWatch(static_cast<int>(free - watched.begin()));
}

BusErrorWatch::BusErrorWatch(BusErrorWatch&& other) noexcept
    : slot_(std::exchange(other.slot_, -1)) {}

BusErrorWatch::~BusErrorWatch() {
  if (slot_ < 0) return;
  const MutexLock lock(making);
  watched.at(static_cast<size_t>(slot_)).end = 0;
  if (--watches == 0) uninstall();
}

uint64_t BusErrorWatch::lost() const {
  return watched.at(static_cast<size_t>(slot_)).lost.load();
}

}  // namespace streamfs::pmem
