// The operations of the low-level FUSE protocol: each decodes, calls the filesystem, replies once.
//
// Some operations have no handler. libfuse answers opendir and flush with ENOSYS, so that the
// kernel never asks again; open and create, too, unless the mount has direct_io. The kernel keeps
// locks itself, checks access itself (default_permissions), and copies through the page cache
// (copy_file_range).
// Thread safety: libfuse calls the handlers from many threads. Names and buffers live until the
// handler returns, so tasks that are handed off copy them. (A WRITE's buffer lives until the reply
// over io_uring, which is the only transport that hands WRITEs off.)
#pragma once

#include <fuse_lowlevel.h>

namespace streamfs::frontend {

// Returns the table of handlers. open, create and release are in it only with `direct_io`.
fuse_lowlevel_ops operations(bool direct_io);

namespace op {
// ops_session.cc
void init(void* userdata, fuse_conn_info* connection);
void statfs(fuse_req_t req, fuse_ino_t ino);
// ops_namespace.cc
void lookup(fuse_req_t req, fuse_ino_t parent, const char* name);
void forget(fuse_req_t req, fuse_ino_t ino, uint64_t count);
void forget_multi(fuse_req_t req, size_t count, fuse_forget_data* forgets);
void mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev);
void mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode);
void symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name);
void create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* file);
void tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, fuse_file_info* file);
void link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name);
void unlink(fuse_req_t req, fuse_ino_t parent, const char* name);
void rmdir(fuse_req_t req, fuse_ino_t parent, const char* name);
void rename(fuse_req_t req, fuse_ino_t from, const char* name, fuse_ino_t to, const char* new_name,
            unsigned flags);
// ops_directory.cc
void readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie, fuse_file_info* file);
void readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie, fuse_file_info* file);
void fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, fuse_file_info* file);
// ops_attr.cc
void getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info* file);
void setattr(fuse_req_t req, fuse_ino_t ino, struct stat* wanted, int to_set, fuse_file_info* file);
void readlink(fuse_req_t req, fuse_ino_t ino);
#if FUSE_VERSION >= 318
void statx(fuse_req_t req, fuse_ino_t ino, int flags, int mask, fuse_file_info* file);
#endif
// ops_xattr.cc
void getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, size_t size);
void setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value, size_t size,
              int flags);
void listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void removexattr(fuse_req_t req, fuse_ino_t ino, const char* name);
// ops_file.cc
void open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* file);
void release(fuse_req_t req, fuse_ino_t ino, fuse_file_info* file);
void read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* file);
void write(fuse_req_t req, fuse_ino_t ino, const char* bytes, size_t size, off_t offset,
           fuse_file_info* file);
void fsync(fuse_req_t req, fuse_ino_t ino, int datasync, fuse_file_info* file);
void fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
               fuse_file_info* file);
void lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* file);
// ops_ioctl.cc
void ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void* argument, fuse_file_info* file,
           unsigned flags, const void* in, size_t in_size, size_t out_size);
}  // namespace op

}  // namespace streamfs::frontend
