#include "fuse-fs/frontend/ops.h"

#include "fuse-fs/frontend/op_times.h"

namespace streamfs::frontend {

fuse_lowlevel_ops operations(bool direct_io) {
  fuse_lowlevel_ops ops{};
  ops.init = op::init;
  ops.statfs = timed<Op::kStatfs, op::statfs>;
  ops.lookup = timed<Op::kLookup, op::lookup>;
  ops.forget = op::forget;
  ops.forget_multi = op::forget_multi;
  ops.mknod = timed<Op::kMknod, op::mknod>;
  ops.mkdir = timed<Op::kMkdir, op::mkdir>;
  ops.symlink = timed<Op::kSymlink, op::symlink>;
  ops.link = timed<Op::kLink, op::link>;
  ops.unlink = timed<Op::kUnlink, op::unlink>;
  ops.rmdir = timed<Op::kRmdir, op::rmdir>;
  ops.rename = timed<Op::kRename, op::rename>;
  ops.readdir = timed<Op::kReaddir, op::readdir>;
  ops.readdirplus = timed<Op::kReaddirplus, op::readdirplus>;
  ops.fsyncdir = timed<Op::kFsyncdir, op::fsyncdir>;
  ops.getattr = timed<Op::kGetattr, op::getattr>;
  ops.setattr = timed<Op::kSetattr, op::setattr>;
  ops.readlink = timed<Op::kReadlink, op::readlink>;
  ops.getxattr = timed<Op::kGetxattr, op::getxattr>;
  ops.setxattr = timed<Op::kSetxattr, op::setxattr>;
  ops.listxattr = timed<Op::kListxattr, op::listxattr>;
  ops.removexattr = timed<Op::kRemovexattr, op::removexattr>;
  ops.read = timed<Op::kRead, op::read>;
  ops.write = timed<Op::kWrite, op::write>;
  ops.fsync = timed<Op::kFsync, op::fsync>;
  ops.fallocate = timed<Op::kFallocate, op::fallocate>;
  ops.lseek = timed<Op::kLseek, op::lseek>;
  ops.ioctl = timed<Op::kIoctl, op::ioctl>;
#if FUSE_VERSION >= 317
  ops.tmpfile = timed<Op::kTmpfile, op::tmpfile>;
#endif
#if FUSE_VERSION >= 318
  ops.statx = timed<Op::kStatx, op::statx>;
#endif
  if (direct_io) {  // Only an OPEN can ask for it; otherwise opening a file costs no request.
    ops.open = op::open;
    ops.create = timed<Op::kCreate, op::create>;
    ops.release = op::release;
  }
  return ops;
}

}  // namespace streamfs::frontend
