// The intent log of a mount: which barrier serves, fsyncs by the log, and what status says.
#include <spdlog/spdlog.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/human_bytes.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "fuse-fs/pair/attachments.h"
#include "pmem/region.h"

namespace streamfs::data {

// An intent log serves if META is persistent, or trusted although it is not. Blocks that
// a crash left in it are shown in any case.
Result<void> FilesystemImpl::open_barrier() {
  pmem::Region& region = *pair_.region;
  barrier_ = make_region_barrier(region);
  const bool logs = geometry().meta_log() && !options_.read_only;
  std::unique_ptr<meta::IntentLog> intent;
  if (geometry().intent_segments() > 0) {
    SFS_ASSIGN(intent, meta::IntentLog::open(region, geometry()));
    recovered_->take(*intent);
    if (recovered_->blocks() > 0)
      spdlog::info("{} blocks of the intent log are not on DATA yet", recovered_->blocks());
  }
  // Without a boot id no mount would know that the machine went down, and rebuild META.
  const bool trusted =
      (pair_.super.features & meta::kFeatureTrustMemory) != 0 && pair::boot_of_machine() != 0;
  const bool serves = trusted || region.meta_class() == pmem::MetaClass::kPersistent;
  if (intent && !options_.read_only && serves) {
    write_cache_->serve_intent_log();
    device_->separate();
    SFS_ASSIGN(auto barrier, IntentBarrier::make({region, *engine_, *device_, *write_cache_,
                                                  *recovered_, clock_, options_.discard},
                                                 std::move(intent), logs ? &pair_.label : nullptr));
    intent_barrier_ = barrier.get();
    barrier_ = std::move(barrier);
    return {};
  }
  if (intent && !options_.read_only) {  // META was persistent when a crash left these blocks
    SFS_TRY(recovered_->bring_home());
    intent->start();
  }
  found_log_ = std::move(intent);
  if (!logs) return {};
  SFS_ASSIGN(barrier_, make_log_barrier(region, *engine_, *device_, pair_.label, options_.discard));
  return {};
}

void FilesystemImpl::open_absorber() {
  const uint64_t wanted = options_.intent_log_max;
  const uint64_t most = intent_barrier_->log().batch_bytes_max();
  if (wanted > most && wanted != kIntentLogMax)
    spdlog::warn("intent_log_max is {} here, not {}: one fsync takes at most a quarter of the log",
                 human_bytes(most), human_bytes(wanted));
  absorber_ = std::make_unique<Absorber>(*core_, *intent_barrier_, wanted);
}

Result<bool> FilesystemImpl::absorb(InodeId id, InodeState& state, bool data_only) {
  if (absorber_ == nullptr) return false;
  return with_units([&] { return absorber_->absorb(id, state, data_only); });
}

IntentStatus FilesystemImpl::intent_status() {
  IntentStatus out;
  out.declared_persistent = (pair_.super.features & meta::kFeatureDeclared) != 0;
  out.trust_memory = (pair_.super.features & meta::kFeatureTrustMemory) != 0;
  out.bytes = meta::intent_log_bytes(geometry().super());
  out.recovered_blocks = recovered_->blocks();
  out.serves = absorber_ != nullptr;
  if (!out.serves) return out;
  const meta::IntentLog::Counts entries = intent_barrier_->log().counts();
  const Absorber::Counts fsyncs = absorber_->counts();
  out.fsync_bytes_max = absorber_->bytes_max();
  out.used_bytes = intent_barrier_->log().used_bytes();
  out.fsyncs = fsyncs.fsyncs;
  out.entries = entries.entries;
  out.delta_entries = entries.delta_entries;
  out.absorbed_bytes = write_cache_->counts().absorbed_blocks * kBlockSize;
  out.refused_on_device = fsyncs.refused[Absorber::kOnDevice];
  out.refused_large = fsyncs.refused[Absorber::kLarge];
  out.refused_full = fsyncs.refused[Absorber::kFull];
  out.refused_old = fsyncs.refused[Absorber::kOld];
  return out;
}

}  // namespace streamfs::data
