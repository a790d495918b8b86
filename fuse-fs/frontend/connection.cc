#include "fuse-fs/frontend/connection.h"

#include <algorithm>
#include <cstdint>

namespace streamfs::frontend {
namespace {

constexpr unsigned kBackground = 128;  // writebacks and read-aheads in flight

void want(fuse_conn_info* connection, uint64_t feature) {
#if FUSE_VERSION >= 317
  fuse_set_feature_flag(connection, feature);
#else
  connection->want |= connection->capable & static_cast<uint32_t>(feature);
#endif
}

void refuse(fuse_conn_info* connection, uint64_t feature) {
#if FUSE_VERSION >= 317
  fuse_unset_feature_flag(connection, feature);
#else
  connection->want &= ~static_cast<uint32_t>(feature);
#endif
}

}  // namespace

void choose_features(fuse_conn_info* connection, bool direct_io) {
  // With it the kernel keeps size and times itself, and a write past its cache moves no time.
  (direct_io ? refuse : want)(connection, FUSE_CAP_WRITEBACK_CACHE);
  want(connection, FUSE_CAP_READDIRPLUS);
  want(connection, FUSE_CAP_READDIRPLUS_AUTO);
  want(connection, FUSE_CAP_PARALLEL_DIROPS);
  want(connection, FUSE_CAP_CACHE_SYMLINKS);
  want(connection, FUSE_CAP_EXPORT_SUPPORT);
  want(connection, FUSE_CAP_IOCTL_DIR);  // hints on directories
  // A directory's default ACL replaces the umask. Only the server knows the ACL, so it applies
  // both.
  want(connection, FUSE_CAP_POSIX_ACL);
  want(connection, FUSE_CAP_DONT_MASK);
  want(connection, FUSE_CAP_NO_OPEN_SUPPORT);
  want(connection, FUSE_CAP_NO_OPENDIR_SUPPORT);
  // Without an OPEN, O_TRUNC must come as a SETATTR or it is lost.
  refuse(connection, FUSE_CAP_ATOMIC_O_TRUNC);
  // Only the kernel changes files, so a new mtime never means that its pages are stale.
  refuse(connection, FUSE_CAP_AUTO_INVAL_DATA);
  // Data is copied once and checksummed in the copy.
  refuse(connection, FUSE_CAP_SPLICE_READ);
  refuse(connection, FUSE_CAP_SPLICE_WRITE);
  refuse(connection, FUSE_CAP_SPLICE_MOVE);
  refuse(connection, FUSE_CAP_HANDLE_KILLPRIV);
#if FUSE_VERSION >= 317
  // Without it, the kernel asks for security.capability before every write.
  want(connection, FUSE_CAP_HANDLE_KILLPRIV_V2);
  if (direct_io) want(connection, FUSE_CAP_DIRECT_IO_ALLOW_MMAP);  // shared mappings, else ENODEV
  connection->no_interrupt = 1;
#endif
  connection->max_write = kRequestBytes;
  connection->max_readahead = std::max(connection->max_readahead, kRequestBytes);
  connection->max_background = kBackground;
  connection->congestion_threshold = kBackground * 3 / 4;
  connection->time_gran = 1;
}

bool offers_acls(const fuse_conn_info* connection) {
  return (connection->capable & FUSE_CAP_POSIX_ACL) != 0;
}

bool offers_writeback(const fuse_conn_info* connection) {
  return (connection->capable & FUSE_CAP_WRITEBACK_CACHE) != 0;
}

void refuse_io_uring([[maybe_unused]] fuse_conn_info* connection) {
#ifdef STREAMFS_FUSE_IO_URING
  refuse(connection, FUSE_CAP_OVER_IO_URING);
#endif
}

bool has_io_uring([[maybe_unused]] const fuse_conn_info* connection) {
#ifdef STREAMFS_FUSE_IO_URING
  return (connection->want_ext & FUSE_CAP_OVER_IO_URING) != 0;
#else
  return false;
#endif
}

}  // namespace streamfs::frontend
