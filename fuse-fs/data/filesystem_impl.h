// Implements Filesystem out of its parts. filesystem.h has the contract and the thread safety.
//
// Each member uses only members declared above it, except through Core's functions. Maintenance,
// IdleScheduler and Scrub, whose threads call the other parts, are last; the destructor stops these
// threads first.
#pragma once

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/io_sizes.h"
#include "base/mutex.h"
#include "fuse-fs/data/absorber.h"
#include "fuse-fs/data/activity.h"
#include "fuse-fs/data/core.h"
#include "fuse-fs/data/data_path.h"
#include "fuse-fs/data/directory_names.h"
#include "fuse-fs/data/durability.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/data/gate.h"
#include "fuse-fs/data/idle_scheduler.h"
#include "fuse-fs/data/intent_barrier.h"
#include "fuse-fs/data/maintenance.h"
#include "fuse-fs/data/meta_growth.h"
#include "fuse-fs/data/meta_units.h"
#include "fuse-fs/data/recovered_blocks.h"
#include "fuse-fs/data/scrub.h"
#include "fuse-fs/data/trim_queue.h"
#include "fuse-fs/data/vstream_store.h"
#include "fuse-fs/data/write_cache.h"
#include "fuse-fs/pair/open_pair.h"

namespace streamfs::data {

class FilesystemImpl final : public Filesystem {
 public:
  // `background`: start the threads of timer, reclaimer, checkpoints and idle work. Tests run the
  // rounds themselves.
  static Result<std::unique_ptr<FilesystemImpl>> open(pair::OpenPair pair,
                                                      const MountOptions& options, Clock& clock,
                                                      bool background);
  ~FilesystemImpl() override;
  Result<void> unmount() override;
  Maintenance& maintenance() { return *maintenance_; }
  meta::Engine& engine() { return *engine_; }
  IdleScheduler& idle_scheduler() { return *idle_; }

  InodeId root() const override { return engine_->root(); }
  Result<meta::Attributes> lookup(InodeId parent, std::string_view name) override;
  Result<meta::Attributes> create(InodeId parent, std::string_view name, uint32_t mode,
                                  uint64_t rdev, std::string_view symlink_target,
                                  const Requester& who) override;
  Result<meta::Attributes> create_unnamed(InodeId parent, uint32_t mode,
                                          const Requester& who) override;
  Result<meta::Attributes> link(InodeId target, InodeId parent, std::string_view name) override;
  Result<void> unlink(InodeId parent, std::string_view name) override;
  Result<void> rmdir(InodeId parent, std::string_view name) override;
  Result<void> rename(InodeId from, std::string_view name, InodeId to, std::string_view new_name,
                      uint32_t flags, const std::function<void(InodeId)>& push_dirty,
                      const meta::Caller& caller = {}) override;
  void look_ahead(InodeId directory, uint64_t cookie, size_t most) override {
    engine_->look_ahead(directory, cookie, most);
  }
  Result<void> read_directory(
      InodeId directory, uint64_t cookie,
      const std::function<bool(const meta::DirectoryEntry&)>& visit) override;
  void reference(std::span<const InodeId> ids, const meta::Engine::Referenced& found) override;
  void forget(InodeId id, uint64_t count) override;

  Result<meta::Attributes> attributes(InodeId id) override { return engine_->attributes(id); }
  Result<meta::Attributes> set_attributes(InodeId id, const meta::AttributeChange& change) override;
  Result<std::string> read_symlink(InodeId id) override { return engine_->read_symlink(id); }
  Result<std::string> get_xattr(InodeId id, std::string_view name) override;
  Result<void> set_xattr(InodeId id, std::string_view name, std::string_view value,
                         int flags) override;
  Result<std::vector<std::string>> list_xattr(InodeId id) override;
  Result<void> remove_xattr(InodeId id, std::string_view name) override;
  meta::Space space() override;

  Result<size_t> read(InodeId id, uint64_t offset, Bytes out) override;
  Result<void> write(InodeId id, uint64_t offset, ConstBytes in,
                     meta::WriteTimes times = meta::WriteTimes::kNow) override;
  Result<void> truncate(InodeId id, uint64_t size) override;
  Result<void> allocate(InodeId id, int mode, uint64_t offset, uint64_t length) override;
  Result<uint64_t> seek(InodeId id, uint64_t offset, int whence) override;
  Result<void> fsync(InodeId id, bool data_only) override;
  Result<void> sync() override;

  Result<HintReply> hint_number(InodeId id, uint32_t number) override;
  Result<HintReply> hint_name(InodeId id, std::string_view name) override;
  Result<HintReply> hint_rw(InodeId id, uint32_t rw_hint) override;
  Result<HintReply> hint_clear(InodeId id) override;
  Result<HintReply> hint_query(InodeId id) override;
  Result<HintReply> find_vstream(std::string_view name, uint32_t number) override;
  HintDevice hint_device() const override;
  placement::Placement& placement() override { return *placement_; }

  Result<Status> status() override;
  void served_by(const std::string& transport, const std::string& why) override {
    const MutexLock lock(served_);
    kernel_transport_ = transport;
    kernel_transport_why_ = why;
  }
  std::vector<InodeId> known_to_kernel() override;
  Result<void> shut_down(ShutdownMode mode) override;
  Gate& gate() override { return gate_; }
  void on_shut_down(std::function<void(InodeId)> forget) override;
  Result<Grown> grow(const GrowOptions& options) override;
  Result<MaintenanceRun> maintain(uint64_t milliseconds) override;
  Result<MaintenanceRun> prepare_poweroff(uint64_t milliseconds) override;
  Result<FreeTrim> trim_free(BlockNo from, uint64_t milliseconds) override;
  Result<void> start_scrub() override { return scrub_->start(); }
  void stop_scrub() override { scrub_->stop(); }
  const IoSizes& device_sizes() const override { return device_sizes_; }
  ScrubStatus scrub_status() override { return scrub_->status(); }
  Result<void> start_trace(const std::string& path) override { return trace_.start(path); }
  Result<void> stop_trace() override { return trace_.stop(); }
  const meta::Geometry& geometry() const override { return engine_->geometry(); }

 private:
  FilesystemImpl(pair::OpenPair pair, const MountOptions& options, Clock& clock);
  Result<void> assemble(bool background);
  Result<void> open_engine(bool background);
  Result<void> open_placement();
  void adopt_stored_model();
  void connect_core();
  Result<void> start(bool background);
  Result<void> check_device();
  void look_at_device();
  Result<void> drain_all();
  void stop_background();
  void empty_kernel_caches();
  Result<void> know_unwritten();
  // Returns the vStream that the attributes name, or the default one if the generation differs.
  VStreamId stored_vstream(const meta::Attributes& attributes) const;
  HintReply reply_of(const placement::VStreamInfo& info) const;
  // Errors: would_wait(), in a Trying after META's medium has failed; those of Health::writable().
  Result<void> may_change() const;
  Result<void> writable() const;

  // Waits until the growth that is under way has ended. Returns false if there was none.
  bool await_growth();
  Result<Grown> grow_locked(const GrowOptions& options) SFS_REQUIRES(growing_);
  Result<void> store_grown_label(const meta::Superblock& super);
  Result<void> go_on_alone(pmem::Region& left, const std::string& why);
  // Call it after the commit of a change of names or attributes. Makes the change durable if the
  // mount is dirsync or META's medium has lost pages. Otherwise the timer does so within a second,
  // unless the commit alone makes it durable (Durability::waits()).
  Result<void> changed();
  Result<void> open_barrier();
  // Requires: intent_barrier_ is set. Logs if the log can take less than intent_log_max.
  void open_absorber();
  IntentStatus intent_status();
  Result<bool> absorb(InodeId id, InodeState& state, bool data_only);
  Result<void> commit_data(InodeId id);
  // Calls changed() if `done` is a success, and otherwise handles what caused the error. Returns
  // `done`, or the error of making the change durable.
  template <typename T>
  Result<T> after_change(Result<T> done);
  // Calls `change`, and finds units of META for it after ENOSPC (meta_units.h).
  template <typename Change>
  auto with_units(const Change& change) -> decltype(change()) {
    return with_meta_units(*core_, change);
  }
  void lost_name(InodeId id);
  placement::Chosen choose(InodeId parent, const meta::Attributes& directory, std::string_view name,
                           uint32_t mode, const Requester& who);
  Result<bool> replaces_file(InodeId to, std::string_view new_name, uint32_t flags);
  Result<HintReply> apply_hint(InodeId id, Result<VStreamId> vstream);
  bool hints_ignored() const;
  Result<void> set_vstream_xattr(InodeId id, std::string_view value);

  const MountOptions options_;
  Clock& clock_;
  pair::OpenPair pair_;  // its superblock is as mounted; the engine has the current one
  Mutex label_;          // guards pair_.label and DATA's first block; before the engine's locks
  Mutex growing_;        // taken after ranges of files and before all other locks; held by grow(),
                         // unmount() and shut_down()
  std::atomic<bool> growth_running_{false};  // set before growing_ is locked, reset last
  std::atomic<bool> ending_{false};          // set under growing_, by unmount() and shut_down()
  Gate gate_;
  Mutex kernel_;  // held during a call of forget_
  std::function<void(InodeId)> forget_ SFS_GUARDED_BY(kernel_);
  Health health_;
  IoSizes device_sizes_;
  TraceRecorder trace_;
  InodeStates states_;
  DirectoryNames directories_;
  std::atomic<uint64_t> app_bytes_{0};
  Mutex served_;  // leaf
  std::string kernel_transport_ SFS_GUARDED_BY(served_);
  std::string kernel_transport_why_ SFS_GUARDED_BY(served_);
  Activity activity_;
  uint64_t looked_at_ = 0;                      // activity_.begun() at the last look_at_device()
  std::unique_ptr<RecoveredBlocks> recovered_;  // over pair_.device
  std::unique_ptr<WriteCache> write_cache_;     // over *recovered_
  std::unique_ptr<EpochStream> device_;         // over *write_cache_
  std::unique_ptr<meta::Engine> engine_;
  std::unique_ptr<MetaGrowth> meta_growth_;
  std::unique_ptr<VStreamStore> vstreams_;
  std::unique_ptr<placement::Placement> placement_;
  std::unique_ptr<meta::IntentLog> found_log_;  // of a mount that does not write to it
  std::unique_ptr<DurabilityBarrier> barrier_;
  IntentBarrier* intent_barrier_ = nullptr;  // *barrier_, if META's intent log serves
  std::unique_ptr<Checksums> checksums_;
  std::unique_ptr<Epochs> epochs_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Absorber> absorber_;  // null: no intent log serves
  std::unique_ptr<TrimQueue> trims_;
  std::unique_ptr<DataPath> path_;
  std::unique_ptr<Maintenance> maintenance_;
  std::unique_ptr<IdleScheduler> idle_;
  std::unique_ptr<Scrub> scrub_;
};

}  // namespace streamfs::data
