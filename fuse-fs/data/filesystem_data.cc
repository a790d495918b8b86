// The data calls of the filesystem: checks, then calls of the data path.
#include <linux/falloc.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/pair/pair.h"

namespace streamfs::data {

Result<size_t> FilesystemImpl::read(InodeId id, uint64_t offset, Bytes out) {
  const Activity::Request request(activity_);
  return path_->read(id, offset, out);
}

Result<void> FilesystemImpl::write(InodeId id, uint64_t offset, ConstBytes in,
                                   meta::WriteTimes times) {
  const Activity::Request request(activity_);
  SFS_TRY(may_change());
  SFS_TRY(engine_->drop_capability(id));
  Result<void> done = path_->write(id, offset, in, times);
  if (!is_would_wait(done)) app_bytes_.fetch_add(in.size(), std::memory_order_relaxed);
  return done;
}

Result<void> FilesystemImpl::truncate(InodeId id, uint64_t size) {
  const Activity::Request request(activity_);
  SFS_TRY(may_change());
  SFS_TRY(engine_->drop_capability(id));
  return path_->truncate(id, size);
}

Result<void> FilesystemImpl::allocate(InodeId id, int mode, uint64_t offset, uint64_t length) {
  const Activity::Request request(activity_);
  SFS_TRY(may_change());
  if (length == 0) return Error{EINVAL};
  if (offset > kMaxFileBytes || length > kMaxFileBytes - offset) return Error{EFBIG};
  SFS_TRY(engine_->drop_capability(id));
  const bool keep_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  switch (mode & ~FALLOC_FL_KEEP_SIZE) {
    case 0:
      SFS_TRY(know_unwritten());
      SFS_TRY(path_->preallocate(id, offset, length, keep_size));
      return changed();
    case FALLOC_FL_PUNCH_HOLE:
      return keep_size ? path_->punch(id, offset, length) : Result<void>(Error{EOPNOTSUPP});
    case FALLOC_FL_ZERO_RANGE:
      SFS_TRY(know_unwritten());
      SFS_TRY(path_->zero(id, offset, length, keep_size));
      return changed();
    default:
      return Error{EOPNOTSUPP};
  }
}

// Raises the format version in META and in DATA's label, durably, before the first unwritten extent
// is stored: an older program would take the content of such an extent for data.
Result<void> FilesystemImpl::know_unwritten() {
  const MutexLock lock(label_);
  if (pair_.label.version >= meta::kUnwrittenVersion) return {};
  SFS_TRY(engine_->raise_version(meta::kUnwrittenVersion));
  SFS_TRY(pair_.region->sync());
  const meta::DataLabel label = meta::grown_label(pair_.label, engine_->superblock());
  SFS_TRY(pair::replace_label(*device_, label));
  pair_.label = label;
  return {};
}

Result<uint64_t> FilesystemImpl::seek(InodeId id, uint64_t offset, int whence) {
  if (whence != SEEK_DATA && whence != SEEK_HOLE) return Error{EINVAL};
  SFS_ASSIGN(const meta::Attributes now, engine_->attributes(id));
  if (offset >= now.size) return Error{ENXIO};
  const FileBlock from{offset / kBlockSize};
  SFS_ASSIGN(const FileBlock found,
             whence == SEEK_DATA ? engine_->seek_data(id, from) : engine_->seek_hole(id, from));
  // The end of the file is a hole, wherever in its last block it is.
  return std::min(std::max(offset, found.value * kBlockSize), now.size);
}

}  // namespace streamfs::data
