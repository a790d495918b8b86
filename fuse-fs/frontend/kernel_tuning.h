// What the kernel keeps too small for a FUSE mount: read-ahead, share of dirty pages. Only root may
// change it; without it the mount is slower, not wrong. And the end of a mount that cannot go on.
// Thread safety: any thread. Nothing here survives the mount.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace streamfs::frontend {

// Writeback must not throttle the process that takes the writes back. Call before any thread is
// started; false when not permitted.
bool become_io_flusher();

// `device` is st_dev of the mount. `flusher`: what become_io_flusher() said; only then may the
// mount have as many dirty pages as any other filesystem.
void raise_limits(dev_t device, bool flusher, const std::string& sysfs = "/sys/class/bdi");

// Bounds what the kernel may hold dirty of this mount, which a nearly full disk needs: what it
// holds beyond the free space is lost. Without `bytes` the limits of raise_limits() hold again.
void limit_dirty(dev_t device, std::optional<uint64_t> bytes, bool flusher,
                 const std::string& sysfs = "/sys/class/bdi");

// The kernel's number of what is mounted there; asks the mount nothing. 0: there is none.
unsigned connection_of(const std::string& mountpoint);
// Whether it is there. Once it has ended, another mount may get its number.
bool is_connected(unsigned connection);
// Whoever waits for an answer of this connection, or asks from now on, gets an error; it stays
// mounted, so that nobody writes into the directory beneath. EACCES, EPERM (fusectl is not mounted
// and not ours to mount), ENOENT (no such connection).
Result<void> end_connection(unsigned connection);

}  // namespace streamfs::frontend
