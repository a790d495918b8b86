// The end of a mount whose process gets no more memory: it says so and exits, as after a kill.
//
// An allocation may fail in the middle of a change, which could then neither go on nor be taken
// back. What a kill leaves is always recovered, so nothing is tried: the kernel's connection ends
// with the process, programs get ENOTCONN, and the next mount has all that was durable.
// Thread safety: call once, before requests are served. After a crash: as after a kill.
#pragma once

namespace streamfs::tools {

// From now on an operator new that fails, or a thread that cannot be started and that nobody can do
// without, ends the process with exit_code::kIo.
void stop_when_out_of_memory();

}  // namespace streamfs::tools
