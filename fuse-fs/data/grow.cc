// streamctl grow: measures both devices, plans, makes META longer, and lets the metadata engine add
// the new space. docs/ORDERING.md "Growing" has the order and the crashes in between.
#include <spdlog/spdlog.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/growth.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/pair/pair.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

Result<meta::GrowthRequest> request_of(const GrowOptions& options, const meta::Superblock& now,
                                       pair::OpenPair& pair) {
  meta::GrowthRequest request;
  request.data_blocks = now.data_blocks;
  if (!options.meta_alone) {
    SFS_ASSIGN(request.data_blocks, pair.device->measure());
  }
  SFS_ASSIGN(request.meta_bytes, pair.region->medium_bytes());
  request.extensible = pair.region->extensible();
  request.wanted_meta = options.meta_bytes;
  request.planned_meta = options.planned_meta;
  if ((pair.label.geometry.features & meta::kFeatureMetaLog) != 0) {
    request.snapshot_blocks = meta::snapshot_capacity(pair.label);
  }
  return request;
}

// Reserved blocks of DATA for the log. Without keep() they are freed again.
class LogRoom {
 public:
  explicit LogRoom(meta::BlockAllocator& blocks) : blocks_(blocks) {}
  ~LogRoom() {
    if (run_) blocks_.cancel(*run_);
  }
  LogRoom(const LogRoom&) = delete;
  LogRoom& operator=(const LogRoom&) = delete;

  std::optional<meta::BlockRange> find(uint64_t blocks) {
    run_ = blocks_.reserve_whole(blocks);
    if (!run_) return std::nullopt;
    return meta::BlockRange{run_->first.value, run_->count};
  }
  bool found() const { return run_.has_value(); }
  void keep() { run_.reset(); }

 private:
  meta::BlockAllocator& blocks_;
  std::optional<meta::BlockRun> run_;
};

Grown::Size size_of(const meta::Superblock& super) {
  return {super.data_blocks * kBlockSize, super.meta_size,
          meta::inodes_possible(super, super.meta_size)};
}

}  // namespace

Result<Grown> FilesystemImpl::grow(const GrowOptions& options) {
  // The thread of unmount() or shut_down() holds growing_, and its last commit may come here.
  if (ending_) return Error{EBUSY, "the filesystem is ending"};
  const Error busy{EBUSY, "a growth is under way"};
  if (growth_running_.exchange(true)) return busy;
  Result<Grown> grown = busy;
  if (growing_.try_lock()) {
    grown = grow_locked(options);
    growing_.unlock();
  }
  growth_running_ = false;  // last: a waiting thread may take the lock
  return grown;
}

bool FilesystemImpl::await_growth() {
  constexpr auto kLookAgain = std::chrono::milliseconds(2);
  if (!growth_running_) return false;
  while (growth_running_) std::this_thread::sleep_for(kLookAgain);
  return true;
}

Result<Grown> FilesystemImpl::grow_locked(const GrowOptions& options) {
  SFS_TRY(health_.writable());
  const meta::Superblock& now = geometry().super();
  SFS_ASSIGN(meta::GrowthRequest request, request_of(options, now, pair_));
  LogRoom log_room(engine_->blocks());
  request.spare_blocks = engine_->space().free_blocks / 4;
  request.find_log_room = [&log_room](uint64_t blocks) { return log_room.find(blocks); };
  SFS_ASSIGN(const meta::Superblock larger, meta::plan_growth(now, request));
  const Grown grown{size_of(now), size_of(larger), device_->info().kind == "emulated"};
  if (options.dry_run || grown.before == grown.after) return grown;
  SFS_TRY(pair_.region->grow(larger.meta_size));
  placement_->grow(larger.data_blocks);
  if (log_room.found()) {  // no record that a recovery may still read may name the log's new blocks
    engine_->journal().checkpoint();
    SFS_TRY(barrier_->renew());
    log_room.keep();
  }
  SFS_TRY(engine_->grow(
      larger, [this](const meta::Superblock& super) { return store_grown_label(super); }));
  if (intent_barrier_ != nullptr) intent_barrier_->log().grow();
  if (grown.before.data_bytes != grown.after.data_bytes)
    spdlog::info("DATA grew from {} to {} bytes", grown.before.data_bytes, grown.after.data_bytes);
  if (grown.before.meta_bytes != grown.after.meta_bytes)
    spdlog::info("META grew from {} to {} bytes", grown.before.meta_bytes, grown.after.meta_bytes);
  return grown;
}

Result<void> FilesystemImpl::store_grown_label(const meta::Superblock& super) {
  const MutexLock lock(label_);
  const meta::DataLabel label = meta::grown_label(pair_.label, super);
  SFS_TRY(pair::replace_label(*device_, label));
  pair_.label = label;
  barrier_->grow(label);
  return {};
}

}  // namespace streamfs::data
