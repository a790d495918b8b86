// The filesystem as POSIX sees it: metadata, placement and the data device put together. The
// frontend decodes a request, calls one method, and replies.
//
// Thread safety: any thread may call any method. In a Trying (base/waiting.h), a method that would
// wait for a device returns would_wait() instead, and the caller runs it again elsewhere. Only
// methods that "may be tried" may be called there. A change under dirsync waits after the change,
// so no Trying may make it.
//
// Errors, beside those that a method names: ESTALE (the inode was freed), EIO, and for every change
// EROFS. After an error that loses durability the mount is read-only (Status::degraded_read_only).
//
// After a crash (docs/ORDERING.md): names and attributes survive from the change on, or from the
// next sync of META, by META class. Data survives from fsync(), sync() or the epoch's end on (by
// default 1 s idle, 5 s age). No file shows another file's data.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/io_sizes.h"
#include "base/process_memory.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/gate.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/pair/open_pair.h"
#include "fuse-fs/placement/placement.h"
#include "pmem/region.h"

namespace streamfs::data {

// Says when the data device may use idle time. kAuto: not on battery.
enum class IdleWorkWhen : uint8_t { kAuto, kAlways, kOff };

inline constexpr uint64_t kIntentLogMax = 256 << 10;

struct MountOptions : pair::PairOptions {
  bool dirsync = false;
  bool verify_checksums = true;
  bool discard = true;  // trim freed extents
  bool plp = false;     // take the data device for power-loss protected, whatever it reports
  uint32_t epoch_idle_ms = 1000, epoch_age_ms = 5000;
  uint32_t write_behind_mib = 32;  // the volatile write cache (write_cache.h); 0: none
  uint32_t cache_mib = 256;        // cached inodes, extents and directory indexes
  IdleWorkWhen idle_work = IdleWorkWhen::kAuto;
  placement::Mode placement = placement::Mode::kAuto;
  std::string profiles_folder;  // of name rules; empty: built-in ones only
  std::string profile;          // one of them, by name; empty: all that hold everywhere
  std::string model_path;       // stored placement model (Placement::adopt_stored); empty: none
  std::string trace_path;       // record a trace from the start
  bool meta_growth = false;     // a META file grows when it is nearly full
  uint64_t meta_size_max = 0;   // the largest such size, in bytes; 0: as mkfs planned
  // The most dirty data of one fsync that the intent log takes, in bytes. 0: none. A mount clamps
  // it to IntentLog::batch_bytes_max().
  uint64_t intent_log_max = kIntentLogMax;
};

// The program behind a request, as placement sees it.
struct Requester {
  meta::Caller caller;
  std::string comm;  // may be empty
};

struct HintReply {
  VStreamId vstream;
  PStreamId pstream;
  uint64_t lifetime_bytes = 0;
  std::string name;
  bool built_in = false;    // the name is one of streamfs's own
  bool of_context = false;  // the name is a context's: program, extension, directory
  bool ignored = false;     // the mount's placement mode ignores hints
};

// The use of idle time since the mount.
struct IdleStatus {
  enum class State : uint8_t { kOff, kBusy, kWorking, kRested, kOnBattery };
  State state = State::kBusy;
  std::string how;  // how the device uses idle time, for people
  blockdev::Pressure pressure = blockdev::Pressure::kUnknown;
  uint64_t periods = 0;      // idle times used
  uint64_t interrupted = 0;  // of these, ended by a request
  uint64_t failed = 0;
  std::string last_error;
  uint64_t copied_bytes = 0, erases = 0;  // by the device, if it reports them
  uint64_t slowest_stop_us = 0;           // from a request to the end of the work
  uint64_t poweroffs_prepared = 0;
};

// The result of maintain() and prepare_poweroff(). It is not finished if work is left, or if
// programs were active in maintain().
struct MaintenanceRun {
  bool finished = false;
  uint64_t copied_bytes = 0, erases = 0;
  std::string how;
};

// The result of trim_free(). `next`: the block to continue from; none at the end.
struct FreeTrim {
  uint64_t bytes = 0;
  std::optional<BlockNo> next;
};

// Says what shut_down() flushes first: kDefault everything, as sync() does; kLogFlush the metadata
// log and no file data; kNoLogFlush nothing.
enum class ShutdownMode : uint8_t { kDefault, kLogFlush, kNoLogFlush };

// How the device and the mount treat hints.
struct HintDevice {
  uint16_t pstream_count = 1;
  bool ignored = false;   // as HintReply's
  std::string mechanism;  // how a write says its pStream (blockdev::DeviceInfo)
};

// The room of META, for people.
struct MetaRoom {
  uint64_t bytes = 0, bytes_max = 0;  // its size, and the size it may grow to by itself
  bool grows = false;
  std::string advice;  // why a META that is nearly full does not grow, and what helps; or empty
};

// The intent log in META (intent_barrier.h).
struct IntentStatus {
  bool serves = false;
  bool declared_persistent = false, trust_memory = false;  // as at mkfs
  uint64_t bytes = 0, used_bytes = 0;
  uint64_t fsync_bytes_max = 0;  // intent_log_max, as it holds for this log
  uint64_t fsyncs = 0;           // made durable by the log
  uint64_t entries = 0, delta_entries = 0;
  uint64_t absorbed_bytes = 0;    // replaced or freed before they were written to DATA
  uint64_t recovered_blocks = 0;  // left by a crash, and not on DATA yet
  // fsyncs that took a device flush, by reason (absorber.h)
  uint64_t refused_on_device = 0, refused_large = 0, refused_full = 0, refused_old = 0;
};

struct Status {
  pmem::MetaClass meta_class{};
  std::string meta_medium;
  bool meta_log = false;
  std::string placement_mode;
  blockdev::DeviceInfo device_info;
  std::string kernel_transport;  // how requests come from the kernel; empty: not known
  std::string kernel_transport_why;
  uint64_t app_bytes = 0;  // bytes WRITE requests carried
  blockdev::DeviceStats device;
  pmem::Counters pmem;
  meta::JournalStats journal;
  meta::MetadataWords metadata_words;
  meta::Space space;
  MetaRoom meta_room;
  placement::ModelStatus model;
  uint64_t epochs = 0, dirty_inodes = 0, checksum_errors = 0, trims_pending_blocks = 0;
  IdleStatus idle;
  uint64_t log_bytes = 0;
  IntentStatus intent;
  ProcessMemory process;
  uint64_t cache_bytes = 0, cache_bytes_max = 0;
  // Data in the write cache, and data that was discarded there unwritten.
  uint64_t write_cache_bytes = 0, never_written_bytes = 0;
  bool mirrored = false;        // META is kept twice
  std::string mirror_degraded;  // which copy is missing and why
  bool degraded_read_only = false;
  std::string degraded_reason;
};

// The progress of the last scrub of this mount.
struct ScrubStatus {
  enum class State : uint8_t { kNever, kRunning, kStopped, kDone };
  struct Finding {
    InodeId inode;
    std::string what;
  };
  State state = State::kNever;
  uint64_t inodes = 0, inodes_in_all = 0;  // inodes_in_all is an estimate
  uint64_t bytes = 0;                      // of data read
  uint64_t damaged = 0;                    // objects and blocks
  uint64_t mended = 0;                     // damaged in one copy of META, whole in the other
  std::vector<Finding> findings;           // the first of them
};

struct GrowOptions {
  // The wanted size of META. Unset: the size of its device, or a file grows in proportion to DATA.
  std::optional<uint64_t> meta_bytes;
  bool meta_alone = false;    // DATA keeps its size, even if its device is larger
  uint64_t planned_meta = 0;  // a size that META may grow to later
  bool dry_run = false;
};
// Sizes before and after a growth: bytes of both devices that the filesystem uses.
struct Grown {
  struct Size {
    uint64_t data_bytes = 0, meta_bytes = 0, inodes_possible = 0;
    friend bool operator==(const Size&, const Size&) = default;
  };
  Size before, after;
  bool data_fixed = false;  // DATA is an emulated SSD, which cannot grow
};

class Filesystem {
 public:
  // Opens the pair (open_pair() may rebuild META), recovers, and starts the background threads.
  // Errors: those of open_pair() and prove() (pair.h), and of the devices.
  static Result<std::unique_ptr<Filesystem>> mount(const std::string& meta_path,
                                                   const std::string& data,
                                                   const MountOptions& options, Clock& clock);
  virtual ~Filesystem() = default;  // without unmount() before it, the mount ends as by a kill
  // Commits and trims everything, makes it durable and marks META clean. May wait. Does nothing
  // after shut_down(). Requires: no request is under way or follows. An error before the mark
  // leaves both devices as after a kill. Errors: EROFS, the mount had become read-only; those of
  // the devices; after all else succeeded EIO, the trace that was being recorded is incomplete.
  virtual Result<void> unmount() = 0;

  virtual InodeId root() const = 0;
  // ---- Names: as meta::Engine; create adds placement. All may be tried.
  virtual Result<meta::Attributes> lookup(InodeId parent, std::string_view name) = 0;
  virtual Result<meta::Attributes> create(InodeId parent, std::string_view name, uint32_t mode,
                                          uint64_t rdev, std::string_view symlink_target,
                                          const Requester& who) = 0;
  virtual Result<meta::Attributes> create_unnamed(InodeId parent, uint32_t mode,
                                                  const Requester& who) = 0;
  virtual Result<meta::Attributes> link(InodeId target, InodeId parent, std::string_view name) = 0;
  virtual Result<void> unlink(InodeId parent, std::string_view name) = 0;
  virtual Result<void> rmdir(InodeId parent, std::string_view name) = 0;
  // If a regular file is replaced, first calls `push_dirty`, which makes the kernel write back the
  // source's dirty pages, and then flushes and commits the source. In a Trying it then
  // returns would_wait(). `push_dirty` may leave pages in the kernel (frontend/dispatch.h).
  virtual Result<void> rename(InodeId from, std::string_view name, InodeId to,
                              std::string_view new_name, uint32_t flags,
                              const std::function<void(InodeId)>& push_dirty,
                              const meta::Caller& caller = {}) = 0;
  // As the engine's: `visit` must not call the filesystem.
  virtual Result<void> read_directory(
      InodeId directory, uint64_t cookie,
      const std::function<bool(const meta::DirectoryEntry&)>& visit) = 0;
  virtual void look_ahead(InodeId directory, uint64_t cookie, size_t most) = 0;  // as the engine's
  // Counts one more reference to each inode, for readdirplus. Leaves out inodes that are gone.
  // `found` must not call the filesystem.
  virtual void reference(std::span<const InodeId> ids, const meta::Engine::Referenced& found) = 0;
  virtual void forget(InodeId id, uint64_t count) = 0;

  // ---- Attributes. All may be tried.
  virtual Result<meta::Attributes> attributes(InodeId id) = 0;
  virtual Result<meta::Attributes> set_attributes(InodeId id,
                                                  const meta::AttributeChange& change) = 0;
  virtual Result<std::string> read_symlink(InodeId id) = 0;
  virtual Result<std::string> get_xattr(InodeId id, std::string_view name) = 0;
  virtual Result<void> set_xattr(InodeId id, std::string_view name, std::string_view value,
                                 int flags) = 0;
  virtual Result<std::vector<std::string>> list_xattr(InodeId id) = 0;
  virtual Result<void> remove_xattr(InodeId id, std::string_view name) = 0;
  virtual meta::Space space() = 0;

  // ---- Data. read(), write(), truncate() and fsync() may be tried. The others may wait.
  virtual Result<size_t> read(InodeId id, uint64_t offset, Bytes out) = 0;  // short at the end
  // Requires: one call for each WRITE request, as placement learns from the request's length.
  virtual Result<void> write(InodeId id, uint64_t offset, ConstBytes in,
                             meta::WriteTimes times = meta::WriteTimes::kNow) = 0;
  virtual Result<void> truncate(InodeId id, uint64_t size) = 0;
  // FALLOC_FL_* modes: 0, KEEP_SIZE, PUNCH_HOLE|KEEP_SIZE, ZERO_RANGE[|KEEP_SIZE]; else EOPNOTSUPP.
  virtual Result<void> allocate(InodeId id, int mode, uint64_t offset, uint64_t length) = 0;
  // `whence`: SEEK_DATA or SEEK_HOLE. Errors: ENXIO, `offset` is past the end, or only a hole
  // follows it.
  virtual Result<uint64_t> seek(InodeId id, uint64_t offset, int whence) = 0;
  // Makes the inode's data and attributes durable. `data_only`: only attributes without which the
  // data could not be read back. Succeeds at once on a read-only mount.
  virtual Result<void> fsync(InodeId id, bool data_only) = 0;
  // Makes everything durable that was written before the call. If an inode's commit fails, commits
  // the others and returns the error. Succeeds at once on a read-only mount.
  virtual Result<void> sync() = 0;

  // ---- Placement. All may be tried.
  // The next four calls store or clear the inode's vStream, and return its vStream afterwards. If
  // the placement mode ignores hints, the first three store nothing. Errors: ERANGE, EINVAL and
  // ENOSPC of Placement::by_number(), by_name() and by_rw_hint().
  virtual Result<HintReply> hint_number(InodeId id, uint32_t number) = 0;
  virtual Result<HintReply> hint_name(InodeId id, std::string_view name) = 0;
  virtual Result<HintReply> hint_rw(InodeId id, uint32_t rw_hint) = 0;
  virtual Result<HintReply> hint_clear(InodeId id) = 0;
  virtual Result<HintReply> hint_query(InodeId id) = 0;
  // Finds a vStream by name or, if the name is empty, by number. Errors: ENOENT.
  virtual Result<HintReply> find_vstream(std::string_view name, uint32_t number) = 0;
  virtual HintDevice hint_device() const = 0;
  virtual placement::Placement& placement() = 0;

  // ---- Operation
  virtual Result<Status> status() = 0;  // may wait: asks the device for its counters
  // Sets, for status(), how requests come from the kernel and why this way.
  virtual void served_by(const std::string& /*transport*/, const std::string& /*why*/) {}
  // Ends the mount by request. Calls sync() in mode kDefault, closes the gate, waits for the
  // requests inside and stops all background work. kLogFlush then flushes the metadata log. May
  // wait. Requires: the caller is not inside the gate. Afterwards nothing is written to DATA or
  // META, also by unmount(), and the next mount recovers as after a kill.
  // Errors: EIO, the mount is shut down already; those of sync(), after which the mount is as it
  // was; those of the log's flush, after which the mount is shut down all the same.
  virtual Result<void> shut_down(ShutdownMode mode) = 0;
  // Returns every inode that the kernel may have cached.
  virtual std::vector<InodeId> known_to_kernel() = 0;
  // Returns the gate. Every request of the kernel passes through it, and so does every control
  // request that may write, except the one for shut_down().
  virtual Gate& gate() = 0;
  // Makes shut_down() call `forget` for each inode of known_to_kernel(). An empty function ends
  // that. No call of the previous function is under way when this returns.
  virtual void on_shut_down(std::function<void(InodeId)> forget) = 0;
  // Makes the filesystem use the space that DATA and META have gained, while programs run. May
  // wait. Errors, before any change: EBUSY (a growth or the end of the mount is under way), EROFS,
  // those of meta::plan_growth(). Later errors: those of the devices.
  virtual Result<Grown> grow(const GrowOptions& options) = 0;
  // The next three calls end when about `milliseconds` have passed, and tell whether work is left.
  // The limit does not cover what they do first: the sync() of prepare_poweroff(), and the freeing
  // and trimming with which trim_free() begins at block 0. They may wait. Errors: EROFS, those of
  // the devices.
  //
  // Frees and trims, then lets the device do its own work. Does nothing while programs are active.
  virtual Result<MaintenanceRun> maintain(uint64_t milliseconds) = 0;
  // Makes everything written so far durable, then works as maintain(), whatever programs do.
  virtual Result<MaintenanceRun> prepare_poweroff(uint64_t milliseconds) = 0;
  // Trims free space from `from` on in long runs, as fstrim(8) does. Blocks whose run was too short
  // for a trim when they were freed are trimmed now. Errors: EOPNOTSUPP, DATA cannot be trimmed.
  virtual Result<FreeTrim> trim_free(BlockNo from, uint64_t milliseconds) = 0;
  virtual const IoSizes& device_sizes() const = 0;  // requests to DATA since the mount
  virtual Result<void> start_scrub() = 0;           // EBUSY: one is under way
  virtual void stop_scrub() = 0;                    // may wait: returns once it has ended
  virtual ScrubStatus scrub_status() = 0;
  virtual Result<void> start_trace(const std::string& path) = 0;
  virtual Result<void> stop_trace() = 0;
  virtual const meta::Geometry& geometry() const = 0;
};

}  // namespace streamfs::data
