#include "fuse-fs/pair/tune_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>

#include "base/human_bytes.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/growth.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/pair.h"
#include "pmem/region.h"

namespace streamfs::pair {
namespace {

bool has(const meta::Superblock& super, uint32_t feature) {
  return (super.features & feature) != 0;
}

Result<void> check_serves(const OpenPair& pair, const TuneOptions& options) {
  if (options.trust_memory && !has(pair.super, meta::kFeatureMetaLog))
    return Error{EINVAL, "--trust-memory needs the log of META on DATA, and there is none"};
  if (options.trust_memory && has(pair.super, meta::kFeatureDeclared))
    return Error{EINVAL,
                 "--trust-memory: META is declared persistent, which tune cannot undo; make a new "
                 "filesystem with mkfs.streamfs --trust-memory"};
  const bool serves = pair.region->meta_class() == pmem::MetaClass::kPersistent ||
                      options.trust_memory || has(pair.super, meta::kFeatureTrustMemory);
  if (serves) return {};
  return Error{EINVAL,
               "META is not persistent, so an intent log would not serve; --meta-class persistent "
               "declares it so, and --trust-memory accepts its loss"};
}

Result<uint64_t> wanted_bytes(const meta::Superblock& now, const TuneOptions& options) {
  const uint64_t left = meta::spare_ring_bytes(now);
  if (!options.intent_log_bytes)
    return left > 0 ? left : std::max(meta::intent_log_share(now.meta_size), meta::kIntentLogLeast);
  const uint64_t bytes = round_down(*options.intent_log_bytes, meta::kRingSize);
  if (bytes == 0)
    return Error{EINVAL, fmt::format("an intent log has at least {} bytes", meta::kRingSize)};
  if (bytes < left)
    return Error{EINVAL,
                 fmt::format("the room of the disabled intent log is {}, and a new log gets "
                             "all of it; give a larger size or none",
                             human_bytes(left))};
  return bytes;
}

void set_class(meta::Superblock& super, const pmem::Region& region, const TuneOptions& options) {
  if (options.declared_persistent) {
    super.features |= meta::kFeatureDeclared;
    super.features &= ~meta::kFeatureTrustMemory;
    super.meta_class = static_cast<uint8_t>(region.meta_class());
  }
  if (options.trust_memory) super.features |= meta::kFeatureTrustMemory;
  if ((super.features & meta::kTunableFeatures) != 0)
    super.version = std::max(super.version, meta::kIntentVersion);
}

Result<meta::Superblock> with_intent_log(const OpenPair& pair, const TuneOptions& options) {
  SFS_TRY(check_serves(pair, options));
  const meta::Superblock& now = pair.super;
  meta::Superblock next = now;
  if (has(now, meta::kFeatureIntentLog)) {
    const uint64_t bytes = meta::intent_log_bytes(now);
    const bool other =
        options.intent_log_bytes && round_down(*options.intent_log_bytes, meta::kRingSize) != bytes;
    if (other)
      return Error{EEXIST, fmt::format("this filesystem has an intent log of {} already; it grows "
                                       "with META (streamctl grow)",
                                       human_bytes(bytes))};
  } else {
    SFS_ASSIGN(const uint64_t medium, pair.region->medium_bytes());
    SFS_ASSIGN(const uint64_t bytes, wanted_bytes(now, options));
    SFS_ASSIGN(next, meta::plan_intent_log(now, medium, bytes));
  }
  set_class(next, *pair.region, options);
  return next;
}

// The room of the log stays with the rings, and a later log gets it back.
Result<meta::Superblock> without_intent_log(const OpenPair& pair) {
  meta::Superblock next = pair.super;
  if (!has(next, meta::kFeatureIntentLog)) return next;
  SFS_ASSIGN(const meta::Geometry geometry, meta::Geometry::from(next));
  SFS_ASSIGN(const auto log, meta::IntentLog::open(*pair.region, geometry));
  if (log->entries_found() > 0)
    return Error{EBUSY,
                 "data of files is in the intent log in META, and not on DATA yet: mount the "
                 "filesystem, write to it and unmount it first"};
  next.features &= ~(meta::kFeatureIntentLog | meta::kFeatureTrustMemory);
  return next;
}

// The segments must be zeroes before the superblock names them: the medium may hold anything.
Result<void> clear_log(pmem::Region& region, const meta::Superblock& next) {
  SFS_TRY(region.grow(next.meta_size));
  SFS_ASSIGN(const meta::Geometry geometry, meta::Geometry::from(next));
  for (uint64_t i = 0; i < geometry.intent_segments(); ++i) {
    const uint64_t offset = geometry.intent_offset(i);
    region.store_zeroes(offset, meta::kRingSize);
    region.fence(region.flush(offset, meta::kRingSize));
  }
  return region.sync();
}

// Makes all checks. Returns the superblock to be stored.
Result<meta::Superblock> plan(const OpenPair& pair, const TuneOptions& options) {
  if (!pair.degraded.empty())
    return Error{EINVAL, "META is degraded (" + pair.degraded + "); give both copies of it"};
  if (pair.super.clean == 0)
    return Error{EUCLEAN,
                 "the filesystem was not unmounted in an orderly way; mount and unmount it, or run "
                 "fsck.streamfs -y, first"};
  if (options.intent_log == TuneOptions::IntentLog::kEnable) return with_intent_log(pair, options);
  if (options.intent_log == TuneOptions::IntentLog::kDisable) return without_intent_log(pair);
  return pair.super;
}

// Takes the plan over into a superblock that has counted an attachment since.
void take(meta::Superblock& super, const meta::Superblock& planned) {
  meta::take_size(super, planned);
  super.features = planned.features;
  super.version = planned.version;
  super.meta_class = planned.meta_class;
}

}  // namespace

Result<Tuned> tune_open_pair(OpenPair& pair, const TuneOptions& options) {
  Tuned out{pair.super, {}};
  SFS_ASSIGN(out.after, plan(pair, options));
  if (out.after.features == out.before.features && out.after.version == out.before.version)
    return out;
  const bool new_log =
      has(out.after, meta::kFeatureIntentLog) && !has(out.before, meta::kFeatureIntentLog);
  SFS_TRY(attach(pair));  // an older copy of either half is refused from here on
  if (new_log) SFS_TRY(clear_log(*pair.region, out.after));
  take(pair.super, out.after);
  SFS_TRY(meta::store_superblock(*pair.region, pair.super));
  ++pair.super.generation;
  SFS_TRY(pair.region->sync());
  pair.label = meta::grown_label(pair.label, pair.super);
  SFS_TRY(replace_label(*pair.device, pair.label));
  out.after = pair.super;
  return out;
}

Result<Tuned> tune_pair(const std::string& meta_path, const std::string& data,
                        const TuneOptions& options) {
  PairOptions open;
  open.mirror_path = options.mirror_path;
  open.wait_seconds = options.wait_seconds;
  open.declare_persistent = options.declared_persistent;
  SFS_ASSIGN(OpenPair pair, open_pair(meta_path, data, open));
  return tune_open_pair(pair, options);
}

}  // namespace streamfs::pair
