// Chooses the kernel features that are switched on when the kernel connects (INIT).
// Thread safety: the handler of INIT calls these functions.
#pragma once

#include <fuse_lowlevel.h>

#include <cstdint>

namespace streamfs::frontend {

// Sets the features and the limits of requests. `direct_io` leaves the write-back cache out.
void choose_features(fuse_conn_info* connection, bool direct_io);
bool offers_acls(const fuse_conn_info* connection);
bool offers_writeback(const fuse_conn_info* connection);
// Returns "" if requests come over io_uring, else why not. The texts are literals. Opens a ring for
// a test, and refuses the feature in `connection` if this process may have none.
const char* why_no_io_uring(fuse_conn_info* connection);

}  // namespace streamfs::frontend
