#include <sys/statvfs.h>

#include "base/types.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/reply.h"

namespace streamfs::frontend::op {

void init(void* userdata, fuse_conn_info* connection) {
  static_cast<Context*>(userdata)->on_init(connection);
}

void statfs(fuse_req_t req, fuse_ino_t /*ino*/) {
  run(req, [req](Context& context) {
    const meta::Space space = context.fs().space();
    struct statvfs out{};
    out.f_bsize = out.f_frsize = kBlockSize;
    out.f_blocks = space.data_blocks;
    out.f_bfree = out.f_bavail = space.free_blocks;
    out.f_files = space.inodes_possible;
    out.f_ffree = out.f_favail = space.inodes_free;
    out.f_namemax = meta::kMaxNameLength;
    fuse_reply_statfs(req, &out);
  });
}

}  // namespace streamfs::frontend::op
