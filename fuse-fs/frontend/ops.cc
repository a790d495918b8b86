#include "fuse-fs/frontend/ops.h"

#include "fuse-fs/frontend/op_times.h"

namespace streamfs::frontend {

fuse_lowlevel_ops operations(bool direct_io) {
  fuse_lowlevel_ops ops{};
  ops.init = op::init;
  ops.statfs = kTimed<Op::kStatfs, op::statfs>;
  ops.lookup = kTimed<Op::kLookup, op::lookup>;
  ops.forget = op::forget;
  ops.forget_multi = op::forget_multi;
  ops.mknod = kTimed<Op::kMknod, op::mknod>;
  ops.mkdir = kTimed<Op::kMkdir, op::mkdir>;
  ops.symlink = kTimed<Op::kSymlink, op::symlink>;
  ops.link = kTimed<Op::kLink, op::link>;
  ops.unlink = kTimed<Op::kUnlink, op::unlink>;
  ops.rmdir = kTimed<Op::kRmdir, op::rmdir>;
  ops.rename = kTimed<Op::kRename, op::rename>;
  ops.readdir = kTimed<Op::kReaddir, op::readdir>;
  ops.readdirplus = kTimed<Op::kReaddirplus, op::readdirplus>;
  ops.fsyncdir = kTimed<Op::kFsyncdir, op::fsyncdir>;
  ops.getattr = kTimed<Op::kGetattr, op::getattr>;
  ops.setattr = kTimed<Op::kSetattr, op::setattr>;
  ops.readlink = kTimed<Op::kReadlink, op::readlink>;
  ops.getxattr = kTimed<Op::kGetxattr, op::getxattr>;
  ops.setxattr = kTimed<Op::kSetxattr, op::setxattr>;
  ops.listxattr = kTimed<Op::kListxattr, op::listxattr>;
  ops.removexattr = kTimed<Op::kRemovexattr, op::removexattr>;
  ops.read = kTimed<Op::kRead, op::read>;
  ops.write = kTimed<Op::kWrite, op::write>;
  ops.fsync = kTimed<Op::kFsync, op::fsync>;
  ops.fallocate = kTimed<Op::kFallocate, op::fallocate>;
  ops.lseek = kTimed<Op::kLseek, op::lseek>;
  ops.ioctl = kTimed<Op::kIoctl, op::ioctl>;
#if FUSE_VERSION >= 317
  ops.tmpfile = kTimed<Op::kTmpfile, op::tmpfile>;
#endif
#if FUSE_VERSION >= 318
  ops.statx = kTimed<Op::kStatx, op::statx>;
#endif
  if (direct_io) {  // Only an OPEN can ask for it; otherwise opening a file costs no request.
    ops.open = op::open;
    ops.create = kTimed<Op::kCreate, op::create>;
    ops.release = op::release;
  }
  return ops;
}

}  // namespace streamfs::frontend
