// What is switched on when the kernel connects (INIT), and why.
// Thread safety: pure functions of the connection.
#pragma once

#include <fuse_lowlevel.h>

#include <cstdint>

namespace streamfs::frontend {

void choose_features(fuse_conn_info* connection, bool direct_io);
bool offers_acls(const fuse_conn_info* connection);
bool offers_writeback(const fuse_conn_info* connection);
// "" where requests come over io_uring, and the reason where they are made not to. Literals.
const char* why_no_io_uring(fuse_conn_info* connection);

}  // namespace streamfs::frontend
