// Ends the process of a mount that gets no more memory: it logs that and exits, as after a kill.
//
// An allocation may fail in the middle of a change, which could then neither go on nor be taken
// back. A kill is always recovered from, so the process does not try to go on: the kernel's
// connection ends with it, programs get ENOTCONN, and the next mount has everything that was
// durable.
// Thread safety: called once, before requests are served.
#pragma once

namespace streamfs::tools {

// From now on the process ends with exit_code::kIo if operator new fails, or if a necessary thread
// cannot be started. Other exceptions that nothing catches are logged, and the process aborts.
void stop_when_out_of_memory();

}  // namespace streamfs::tools
