#include "fuse-fs/frontend/ops.h"

namespace streamfs::frontend {

fuse_lowlevel_ops operations(bool direct_io) {
  fuse_lowlevel_ops ops{};
  ops.init = op::init;
  ops.statfs = op::statfs;
  ops.lookup = op::lookup;
  ops.forget = op::forget;
  ops.forget_multi = op::forget_multi;
  ops.mknod = op::mknod;
  ops.mkdir = op::mkdir;
  ops.symlink = op::symlink;
  ops.link = op::link;
  ops.unlink = op::unlink;
  ops.rmdir = op::rmdir;
  ops.rename = op::rename;
  ops.readdir = op::readdir;
  ops.readdirplus = op::readdirplus;
  ops.fsyncdir = op::fsyncdir;
  ops.getattr = op::getattr;
  ops.setattr = op::setattr;
  ops.readlink = op::readlink;
  ops.getxattr = op::getxattr;
  ops.setxattr = op::setxattr;
  ops.listxattr = op::listxattr;
  ops.removexattr = op::removexattr;
  ops.read = op::read;
  ops.write = op::write;
  ops.fsync = op::fsync;
  ops.fallocate = op::fallocate;
  ops.lseek = op::lseek;
  ops.ioctl = op::ioctl;
#if FUSE_VERSION >= 317
  ops.tmpfile = op::tmpfile;
#endif
#if FUSE_VERSION >= 318
  ops.statx = op::statx;
#endif
  if (direct_io) {  // Only an OPEN can ask for it; otherwise opening a file costs no request.
    ops.open = op::open;
    ops.create = op::create;
    ops.release = op::release;
  }
  return ops;
}

}  // namespace streamfs::frontend
