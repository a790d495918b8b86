// Mounting, unmounting, sync and status: the life of a filesystem.
#include "fuse-fs/data/filesystem.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/event.h"
#include "base/mutex.h"
#include "base/power_supply.h"
#include "base/process_memory.h"
#include "base/result.h"
#include "base/set_while.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/blockdev/counted_device.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/final_flush_device.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "fuse-fs/data/owned_device.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/pair.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

constexpr int kSaveRounds = 32;  // a tick stores only so many vStreams

// A device without streams still gains from separate allocation: data of similar lifetime shares
// aligned regions, which die and are trimmed whole.
constexpr uint16_t kRegionsOnly = 4;
uint16_t pstreams_of(const blockdev::DeviceInfo& device) {
  if (device.maps_vstreams) return 1;
  return device.pstream_count > 1 ? device.pstream_count : kRegionsOnly;
}

Result<placement::Mode> mode_for(placement::Mode wanted, const blockdev::DeviceInfo& device) {
  using placement::Mode;
  if (wanted == Mode::kAuto && device.maps_vstreams) return Mode::kPassthrough;
  if (wanted == Mode::kPassthrough && !device.maps_vstreams)
    return Error{EINVAL, "placement=passthrough: " + device.path + " does not map vStreams itself"};
  return wanted;
}

}  // namespace

Result<std::unique_ptr<Filesystem>> Filesystem::mount(const std::string& meta_path,
                                                      const std::string& data,
                                                      const MountOptions& options, Clock& clock) {
  SFS_ASSIGN(pair::OpenPair pair, pair::open_pair(meta_path, data, options));
  if (pair.unproven) SFS_TRY(pair::prove(pair));
  if (!options.read_only) {
    SFS_TRY(pair::attach(pair));
    SFS_TRY(pair::renew_label(pair));
  }
  SFS_ASSIGN(auto filesystem, FilesystemImpl::open(std::move(pair), options, clock, true));
  return std::unique_ptr<Filesystem>(std::move(filesystem));
}

Result<std::unique_ptr<FilesystemImpl>> FilesystemImpl::open(pair::OpenPair pair,
                                                             const MountOptions& options,
                                                             Clock& clock, bool background) {
  std::unique_ptr<FilesystemImpl> made(new FilesystemImpl(std::move(pair), options, clock));
  SFS_TRY(made->assemble(background));
  SFS_TRY(made->start(background));
  return made;
}

FilesystemImpl::FilesystemImpl(pair::OpenPair pair, const MountOptions& options, Clock& clock)
    : options_(options), clock_(clock), pair_(std::move(pair)), health_(options.read_only) {
  auto counted = std::make_unique<blockdev::CountedDevice>(std::move(pair_.device), device_sizes_);
  pair_.device = std::make_unique<blockdev::FinalFlushDevice>(
      std::make_unique<OwnedDevice>(std::move(counted), health_));
  const bool flush_is_free = options_.plp || pair_.device->info().flush_is_free;
  const uint64_t write_cache_mib = options_.read_only ? 0 : options_.write_behind_mib;
  const uint64_t write_cache_blocks = (write_cache_mib << 20) / kBlockSize;
  recovered_ = std::make_unique<RecoveredBlocks>(*pair_.device);
  write_cache_ = std::make_unique<WriteCache>(*recovered_, write_cache_blocks, clock_);
  device_ = std::make_unique<EpochStream>(*write_cache_, flush_is_free);
}

// META: the engine, what makes its records durable, and what makes it larger.
Result<void> FilesystemImpl::open_engine(bool background) {
  pmem::Region& region = *pair_.region;
  meta::Engine::Options engine_options;
  engine_options.read_only = options_.read_only;
  engine_options.cache_bytes = uint64_t{options_.cache_mib} << 20;
  engine_options.start_background = background && !options_.read_only;
  SFS_ASSIGN(engine_, meta::Engine::open(region, pair_.super, clock_, engine_options));
  engine_->blocks().on_discarded(
      [this](meta::BlockRun run) { write_cache_->discard(run.first, run.count); });
  region.on_copy_dropped(
      [this](pmem::Region& left, const std::string& why) { return go_on_alone(left, why); });
  SFS_TRY(open_barrier());
  meta_growth_ = std::make_unique<MetaGrowth>(
      *engine_, clock_,
      MetaGrowth::Limits{options_.meta_growth && !options_.read_only, region.extensible(),
                         options_.meta_size_max},
      [this](const GrowOptions& larger) {
        const Result<Grown> done = grow(larger);
        return done ? Result<void>() : done.error();
      },
      [this] { return await_growth(); });
  return {};
}

Result<void> FilesystemImpl::open_placement() {
  vstreams_ = std::make_unique<VStreamStore>(*engine_);
  placement::Placement::Options placement_options;
  SFS_ASSIGN(placement_options.mode, mode_for(options_.placement, device_->info()));
  placement_options.pstream_count = pstreams_of(device_->info());
  placement_options.capacity_blocks = pair_.super.data_blocks;
  std::copy(std::begin(pair_.super.uuid), std::end(pair_.super.uuid),
            placement_options.uuid.begin());
  placement_options.profiles_folder = options_.profiles_folder;
  placement_options.profile = options_.profile;
  SFS_ASSIGN(placement_, placement::Placement::open(*vstreams_, clock_, placement_options));
  for (const std::string& wrong : placement_->complaints()) spdlog::warn("{}", wrong);
  adopt_stored_model();
  return {};
}

// A filesystem without a stored model had no daemon yet, and mounts without a word.
void FilesystemImpl::adopt_stored_model() {
  if (options_.model_path.empty() || options_.placement == placement::Mode::kOff) return;
  const Result<std::string> adopted = placement_->adopt_stored(options_.model_path);
  if (adopted) return spdlog::info("{}", *adopted);
  const Error& why = adopted.error();
  if (why.code != ENOENT && why.code != ENOTDIR)
    spdlog::warn("the stored placement model is not used: {}", why.context);
}

Result<void> FilesystemImpl::assemble(bool background) {
  SFS_TRY(open_engine(background));
  SFS_TRY(open_placement());
  pmem::Region& region = *pair_.region;
  EpochStream& device = *device_;
  checksums_ = std::make_unique<Checksums>(*engine_, options_.verify_checksums);
  epochs_ = std::make_unique<Epochs>(*engine_, device, *write_cache_, *barrier_, *barrier_, health_,
                                     clock_,
                                     Epochs::Limits{options_.epoch_idle_ms, options_.epoch_age_ms});
  core_ = std::make_unique<Core>(Core{device,
                                      *write_cache_,
                                      *engine_,
                                      *placement_,
                                      health_,
                                      *epochs_,
                                      states_,
                                      *checksums_,
                                      trace_,
                                      {},
                                      {},
                                      {},
                                      {},
                                      {}});
  if (intent_barrier_ != nullptr) {
    intent_barrier_->on_round([this] { return epochs_->flush_again(); });
    open_absorber();
  }
  trims_ = std::make_unique<TrimQueue>(region, *engine_, device, *placement_, *barrier_, health_,
                                       trace_, options_.discard, activity_);
  path_ = std::make_unique<DataPath>(*core_);
  maintenance_ = std::make_unique<Maintenance>(*core_, *barrier_, *trims_, clock_);
  idle_ = std::make_unique<IdleScheduler>(
      device, activity_, clock_,
      IdleScheduler::Setup{options_.read_only ? IdleWorkWhen::kOff : options_.idle_work,
                           [] { return on_battery(); },
                           [this] { return maintenance_->reclaim(TrimQueue::Pace::kGivesWay); }});
  scrub_ = std::make_unique<Scrub>(*core_, *path_, [this] { return activity_.begun(); });
  connect_core();
  return {};
}

// Gives the data path its ways to the parts that are built on it.
void FilesystemImpl::connect_core() {
  core_->reclaim = [this](const std::function<bool()>& is_enough) {
    constexpr auto kPace = TrimQueue::Pace::kForRoom;
    const TrimQueue::Haste haste(*trims_, kPace);  // for all rounds together
    while (maintenance_->reclaim(kPace).ok() && !is_enough() && trims_->pending_blocks() > 0) {
    }
  };
  core_->free_orphans = [this] { (void)maintenance_->free_orphans(); };
  core_->make_meta_room = [this](uint64_t bytes) { return meta_growth_->make_room(bytes); };
  core_->keep_meta_room = [this] { meta_growth_->keep_room(); };
  core_->look_at_device = [this] { look_at_device(); };
}

meta::Space FilesystemImpl::space() {
  meta::Space space = engine_->space();
  const uint64_t more = meta_growth_->growable_files();
  space.inodes_free += more;
  space.inodes_possible += more;
  return space;
}

Result<void> FilesystemImpl::check_device() {
  const MutexLock lock(label_);
  SFS_TRY(device_->check_same());
  SFS_ASSIGN(const meta::DataLabel label, pair::read_label(*device_));
  if (std::ranges::equal(label.geometry.uuid, pair_.label.geometry.uuid)) return {};
  return Error{EMEDIUMTYPE, device_->info().path + " belongs to another streamfs now"};
}

// Finds out whether the device was formatted or overwritten by another program. Failures are left
// to the requests that meet them. The device is not read if no request has begun since the last
// look, so that an idle disk can sleep.
void FilesystemImpl::look_at_device() {
  const uint64_t begun = activity_.begun();
  if (std::exchange(looked_at_, begun) == begun || !health_.readable().ok()) return;
  const auto done = check_device();
  if (!done.ok() && done.error().code == EMEDIUMTYPE)
    health_.lose("DATA is not what was mounted: " + done.error().message());
}

Result<void> FilesystemImpl::start(bool background) {
  if (!options_.trace_path.empty()) SFS_TRY(trace_.start(options_.trace_path));
  if (options_.read_only) return {};
  SFS_TRY(pair_.region->sync());  // META is marked as in use before other changes reach its medium
  if (background) {
    maintenance_->start();
    idle_->start();
  }
  return {};
}

FilesystemImpl::~FilesystemImpl() {
  if (scrub_ != nullptr) scrub_->stop();
  if (idle_ != nullptr) idle_->stop();
  if (maintenance_ != nullptr) maintenance_->stop();
  (void)trace_.stop();
}

// Each step leaves work for the next: commits and orphans free blocks, and trims give them back.
Result<void> FilesystemImpl::drain_all() {
  SFS_TRY(sync());
  SFS_TRY(maintenance_->free_orphans());
  SFS_TRY(trims_->drain(TrimQueue::Pace::kLeaves));
  for (int round = 0; round < kSaveRounds; ++round) (void)placement_->tick();
  return durable_or_read_only(barrier_->settle(engine_->journal().last()), health_);
}

Result<void> FilesystemImpl::unmount() {
  const MutexLock no_growth(growing_);
  const SetWhile ending(ending_);
  if (gate_.closed()) return {};  // shut down: not clean, as after a kill
  scrub_->stop();
  idle_->stop();
  maintenance_->stop();
  // A trace that could not be written takes nothing from the filesystem.
  const Result<void> traced = trace_.on() ? trace_.stop() : Result<void>();
  if (options_.read_only) return traced;
  if (health_.degraded()) return Error{EROFS, health_.reason()};
  SFS_TRY(drain_all());
  SFS_TRY(engine_->close_clean(barrier_->close()));
  SFS_TRY(pair_.region->sync());
  const MutexLock lock(label_);
  const meta::Superblock super = engine_->superblock();
  SFS_TRY(pair::write_attachments(*device_, {super.attachments, super.mirror_token}));
  return traced;
}

// Called in a sync of META that is kept twice, before a change that only one copy holds is reported
// as durable. Like a mount of that copy, it counts an attachment and draws a token, in META first.
Result<void> FilesystemImpl::go_on_alone(pmem::Region& left, const std::string& why) {
  log_event(Event::kMetaDegraded, spdlog::level::err,
            fmt::format("META is degraded: a copy is given up ({})", why));
  const MutexLock lock(label_);
  SFS_TRY(pair::bring_data_level(*device_, left, engine_->superblock()));  // an unmount has counted
  SFS_TRY(engine_->attach_again(pair::draw_token(engine_->superblock().mirror_token)));
  SFS_TRY(left.sync());
  const meta::Superblock super = engine_->superblock();
  return pair::write_attachments(*device_, {super.attachments, super.mirror_token});
}

Result<void> FilesystemImpl::fsync(InodeId id, bool data_only) {
  if (options_.read_only) return {};  // a read-only mount has no changes
  SFS_TRY(may_change());
  const Activity::Request request(activity_);
  const auto state = states_.get(id);
  SFS_ASSIGN(const bool absorbed, absorb(id, *state, data_only));
  if (absorbed) return {};
  const uint64_t epoch = state->last_epoch.load(std::memory_order_acquire);
  if (!may_wait() && (barrier_->waits() || !epochs_->commits_at_once(id, epoch)))
    return would_wait();
  SFS_ASSIGN(const TxId last,
             with_units([&] { return epochs_->flush_and_commit(id, epoch, data_only); }));
  return durable_or_read_only(barrier_->acknowledge(last), health_);
}

Result<void> FilesystemImpl::sync() {
  if (options_.read_only) return {};
  SFS_TRY(health_.writable());
  Result<void> closed = with_units([&] { return epochs_->close(); });
  SFS_TRY(make_durable(*barrier_, engine_->journal().last(), health_));
  return closed;
}

Result<MaintenanceRun> FilesystemImpl::maintain(uint64_t milliseconds) {
  SFS_TRY(writable());
  return idle_->work(IdleScheduler::Asked::kMaintain, milliseconds);
}

Result<MaintenanceRun> FilesystemImpl::prepare_poweroff(uint64_t milliseconds) {
  SFS_TRY(writable());
  SFS_TRY(sync());
  return idle_->work(IdleScheduler::Asked::kPowerOff, milliseconds);
}

Result<FreeTrim> FilesystemImpl::trim_free(BlockNo from, uint64_t milliseconds) {
  SFS_TRY(writable());
  if (from.value == 0) SFS_TRY(maintenance_->reclaim());  // makes blocks freed last allocatable
  const uint64_t deadline = clock_.monotonic_ms() + milliseconds;
  return trims_->trim_free(from, [&] { return clock_.monotonic_ms() >= deadline; });
}

// Once META's medium has failed, changed() waits for it.
Result<void> FilesystemImpl::may_change() const {
  if (!may_wait() && barrier_->damaged()) return would_wait();
  return health_.writable();
}

Result<void> FilesystemImpl::writable() const {
  if (options_.read_only) return Error{EROFS, "it is mounted read-only"};
  return health_.writable();
}

Result<Status> FilesystemImpl::status() {
  Status out;
  out.meta_class = pair_.region->meta_class();
  out.meta_medium = pair_.region->medium();
  out.meta_log = geometry().meta_log();
  out.placement_mode = placement::to_string(placement_->mode());
  out.device_info = device_->info();
  out.device_info.flush_is_free = device_->flush_is_free();
  {
    const MutexLock lock(served_);
    out.kernel_transport = kernel_transport_;
    out.kernel_transport_why = kernel_transport_why_;
  }
  out.app_bytes = app_bytes_.load(std::memory_order_relaxed);
  SFS_ASSIGN(out.device, device_->stats());
  out.pmem = pair_.region->counters();
  out.journal = engine_->journal().stats();
  out.metadata_words = engine_->metadata_words();
  out.space = space();
  out.meta_room = meta_growth_->room();
  out.model = placement_->model_status();
  out.epochs = epochs_->closed();
  out.dirty_inodes = epochs_->dirty_inodes();
  out.checksum_errors = checksums_->errors();
  out.trims_pending_blocks = trims_->pending_blocks();
  out.idle = idle_->status();
  out.log_bytes = barrier_->log_bytes();
  out.intent = intent_status();
  out.process = process_memory();
  out.cache_bytes = engine_->cached_bytes();
  out.cache_bytes_max = uint64_t{options_.cache_mib} << 20;
  const WriteCache::Counts writes = write_cache_->counts();
  out.write_cache_bytes = writes.cached_blocks * kBlockSize;
  out.never_written_bytes = writes.discarded_blocks * kBlockSize;
  out.mirrored = (pair_.super.features & meta::kFeatureMirror) != 0;
  out.mirror_degraded = pair_.degraded.empty() ? pair_.region->dropped() : pair_.degraded;
  out.degraded_read_only = health_.degraded();
  out.degraded_reason = health_.reason();
  return out;
}

}  // namespace streamfs::data
