// Chooses the kernel features that are switched on when the kernel connects (INIT).
// Thread safety: pure functions of the connection.
#pragma once

#include <fuse_lowlevel.h>

#include <cstdint>

namespace streamfs::frontend {

void choose_features(fuse_conn_info* connection, bool direct_io);
bool offers_acls(const fuse_conn_info* connection);
bool offers_writeback(const fuse_conn_info* connection);
// Returns "" if requests come over io_uring, else why not. The texts are literals.
const char* why_no_io_uring(fuse_conn_info* connection);

}  // namespace streamfs::frontend
