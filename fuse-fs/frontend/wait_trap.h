// Ends the process when a ring thread waits in a system call that is not its ring's, so that a test
// finds such a wait. On if the environment has STREAMFS_TRAP_WAITS=1 when the mount begins.
//
// It traps calls that read, write or sync a file at a place, sleep, or wait for descriptors and
// processes, with seccomp(2). Waits for locks do not count. io_uring_enter(2) is not trapped,
// because the ring itself needs it: device requests over io_uring are found by about_to_wait()
// (base/waiting.h), which aborts then, too.
// Thread safety: any thread.
#pragma once

namespace streamfs::frontend {

bool traps_waits();  // returns whether the environment asks for it
// Arms the calling thread and every thread that it starts later. Does nothing the second time.
void trap_waits();
// Does so if libfuse named the thread a ring's. Threads of /dev/fuse may wait: they serve requests
// until libfuse has started its rings, and ever after if it cannot.
void trap_waits_of_a_ring();

}  // namespace streamfs::frontend
