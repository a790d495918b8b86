#include "fuse-fs/frontend/wait_trap.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/waiting.h"
#include "fuse-fs/frontend/ring_threads.h"

namespace streamfs::frontend {
namespace {

constexpr std::array kTrapped = {
    __NR_pread64,         __NR_preadv,          __NR_preadv2,   __NR_pwrite64,
    __NR_pwritev,         __NR_pwritev2,        __NR_fsync,     __NR_fdatasync,
    __NR_sync_file_range, __NR_msync,           __NR_fallocate, __NR_ftruncate,
    __NR_nanosleep,       __NR_clock_nanosleep, __NR_ppoll,     __NR_pselect6,
    __NR_epoll_pwait,     __NR_wait4,           __NR_flock};

std::vector<sock_filter> program() {
  std::vector<sock_filter> out = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  for (const int number : kTrapped) {
    out.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
    out.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  }
  out.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return out;
}

}  // namespace

bool traps_waits() {
  const char* const asked = secure_getenv("STREAMFS_TRAP_WAITS");
  return asked != nullptr && std::string_view(asked) == "1";
}

void trap_waits() {
  thread_local bool armed = false;
  if (armed) return;
  armed = true;
  abort_on_waits();
  std::vector<sock_filter> filter = program();
  const sock_fprog all = {static_cast<unsigned short>(filter.size()), filter.data()};
  SFS_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  SFS_ASSERT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0);
}

void trap_waits_of_a_ring() {
  if (is_ring_thread()) trap_waits();
}

}  // namespace streamfs::frontend
