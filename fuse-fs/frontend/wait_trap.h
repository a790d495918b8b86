// Ends the process when a ring thread makes a system call that waits, so that a test finds it. On
// if the environment has STREAMFS_TRAP_WAITS=1 when the mount begins.
//
// seccomp(2) traps calls that read, write or sync a file at a place, sleep, or wait for descriptors
// or processes (kTrapped in wait_trap.cc). read, write and futex are not trapped: ring threads read
// /proc, log, and take locks. io_uring_enter is not trapped, because the ring needs it; device
// requests over io_uring are found by about_to_wait() (base/waiting.h), which aborts then, too.
// Thread safety: any thread.
#pragma once

namespace streamfs::frontend {

bool traps_waits();  // returns whether the environment asks for it
// Arms the calling thread and every thread that it starts later, and takes the right to gain
// privileges from them. Calls abort_on_waits(). Does nothing the second time. Aborts if the kernel
// refuses the filter.
void trap_waits();
// Calls trap_waits() if this thread's name begins with kRingThreads. Threads of /dev/fuse may wait:
// they serve requests until libfuse has started its rings, and ever after if it cannot.
void trap_waits_of_a_ring();

}  // namespace streamfs::frontend
