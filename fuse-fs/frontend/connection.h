// Chooses the kernel features that are switched on when the kernel connects (INIT).
// Thread safety: the handler of INIT calls these functions.
#pragma once

#include <fuse_lowlevel.h>

#include <cstdint>

namespace streamfs::frontend {

inline constexpr unsigned kRequestBytes = 1 << 20;  // payload of the largest READ or WRITE

// Sets the features and the limits of requests. `direct_io` leaves the write-back cache out.
void choose_features(fuse_conn_info* connection, bool direct_io);
bool offers_acls(const fuse_conn_info* connection);
bool offers_writeback(const fuse_conn_info* connection);
// Refuses io_uring to libfuse, which else takes it if the environment has FUSE_URING_ENABLE.
void refuse_io_uring(fuse_conn_info* connection);
// Returns whether requests come over io_uring. Requires: libfuse has answered INIT.
bool has_io_uring(const fuse_conn_info* connection);

}  // namespace streamfs::frontend
