// Routes libfuse's own messages to our log. A message that repeats the last one is logged once a
// minute. While a mount is tried, the first message is kept for the mount's error.
// Thread safety: any thread.
#pragma once

#include <string>

namespace streamfs::frontend {

void route_fuse_log();  // once, before the first session
// Keeps the next message from now on, and drops the others.
void begin_capture();
// Ends this, and returns the kept message without its newline; "" if there was none.
std::string end_capture();

}  // namespace streamfs::frontend
