// The end of a mount by request: no request is served and nothing is written from then on.
#include <cerrno>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/set_while.h"
#include "base/types.h"
#include "fuse-fs/data/filesystem_impl.h"

namespace streamfs::data {
namespace {

const char* reason_of(ShutdownMode mode) {
  switch (mode) {
    case ShutdownMode::kDefault:
      return "shut down after a sync";
    case ShutdownMode::kLogFlush:
      return "shut down after a flush of the metadata log";
    case ShutdownMode::kNoLogFlush:
      break;
  }
  return "shut down without a flush";
}

}  // namespace

void FilesystemImpl::on_shut_down(std::function<void(InodeId)> forget) {
  const MutexLock lock(kernel_);
  forget_ = std::move(forget);
}

std::vector<InodeId> FilesystemImpl::known_to_kernel() {
  std::vector<InodeId> known = engine_->referenced();
  known.push_back(engine_->root());
  return known;
}

// Tells the kernel that its caches are stale, from which it would still answer. The lock is taken
// for one inode at a time, so that a session that ends waits for one of them at most.
void FilesystemImpl::empty_kernel_caches() {
  for (const InodeId id : known_to_kernel()) {
    const MutexLock lock(kernel_);
    if (forget_) forget_(id);
  }
}

void FilesystemImpl::stop_background() {
  scrub_->stop();
  idle_->stop();
  maintenance_->stop();
  engine_->journal().stop_checkpointer();
}

Result<void> FilesystemImpl::shut_down(ShutdownMode mode) {
  const MutexLock no_growth(growing_);
  const SetWhile ending(ending_);
  if (gate_.closed()) return Error{EIO, "it is shut down already"};
  if (mode == ShutdownMode::kDefault) SFS_TRY(sync());
  gate_.close();
  gate_.wait_until_empty();
  stop_background();
  Result<void> durable;
  if (mode == ShutdownMode::kLogFlush && !options_.read_only)
    durable = make_durable(*barrier_, engine_->journal().last(), health_);
  health_.lose(reason_of(mode));
  empty_kernel_caches();
  return durable;
}

}  // namespace streamfs::data
