// Raises limits that the kernel sets too low for a FUSE mount (read-ahead, share of dirty pages),
// and ends a mount that cannot go on. Only root may change the limits; without that the mount is
// slower, not wrong.
// Thread safety: any thread. Nothing here survives the mount.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace streamfs::frontend {

// Exempts this thread, and threads that it starts later, from writeback throttling, because the
// mount's write-back waits for this process. Returns false if that is not permitted. Requires: no
// thread has been started yet.
bool become_io_flusher();

// Raises read-ahead and the mount's share of dirty pages. `device` is st_dev of the mount.
// `flusher` is the result of become_io_flusher(): if it is true, the kernel's strict limit for FUSE
// is lifted, too. A setting that cannot be written stays as it is.
void raise_limits(dev_t device, bool flusher, const std::string& sysfs = "/sys/class/bdi");

// Limits the dirty pages of this mount that the kernel may hold. A nearly full disk needs that,
// because dirty pages beyond the free space are lost. nullopt: sets the limits of raise_limits()
// again.
void limit_dirty(dev_t device, std::optional<uint64_t> bytes, bool flusher,
                 const std::string& sysfs = "/sys/class/bdi");

// Returns the kernel's number of the connection that is mounted there, without a request to it.
// 0: there is none. Requires: a FUSE mount; the number of another filesystem means nothing.
unsigned connection_of(const std::string& mountpoint);
// Returns whether the connection exists; false if this process may not open fusectl. Once it has
// ended, another mount may get its number.
bool is_connected(unsigned connection);
// Opens the file that ends a connection when a byte is written to it. Returns a file descriptor.
// Errors: those of end_connection().
Result<int> open_abort(unsigned connection);
// Ends a connection: programs that wait for its answers, or ask later, get an error. The
// mountpoint stays mounted, so that no program writes into the directory beneath.
// Errors: EACCES; EPERM, fusectl is not mounted and this user may not mount it; ENOENT, there is no
// such connection.
Result<void> end_connection(unsigned connection);

}  // namespace streamfs::frontend
