// Routes libfuse's own messages to our log, a repeated one once a minute. While a mount is tried,
// the messages are kept for its error.
// Thread safety: any thread.
#pragma once

#include <string>

namespace streamfs::frontend {

void route_fuse_log();      // once, before the first session
void begin_capture();       // from now on, messages are kept
std::string end_capture();  // the first of them, without its newline; empty if none

}  // namespace streamfs::frontend
