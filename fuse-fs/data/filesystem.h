// The filesystem as POSIX sees it: meta, placement and the data device put together. The frontend
// decodes a request, calls one method, replies.
//
// Thread safety: every method, any thread. Methods marked "may wait" do device I/O or wait for it
// and must not run on a thread that serves the transport; the others never wait for a device.
//
// What a crash leaves: docs/ORDERING.md. In short: names and attributes at once (by META class),
// data after fsync(), sync() or the epoch's end (1 s idle, 5 s age); never another file's data.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
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

// When the data device may use idle time: not on battery, or then too, or never.
enum class IdleWorkWhen : uint8_t { kAuto, kAlways, kOff };

struct MountOptions : pair::PairOptions {
  bool dirsync = false;
  bool verify_checksums = true;
  bool discard = true;  // trim freed extents
  bool plp = false;     // the data device is power-loss protected, whatever it says of its cache
  uint32_t epoch_idle_ms = 1000, epoch_age_ms = 5000;
  uint32_t write_behind_mib = 32;  // the volatile write cache (write_cache.h); 0: none
  uint32_t cache_mib = 256;  // inodes, extents and directory indexes kept to be asked for again
  IdleWorkWhen idle_work = IdleWorkWhen::kAuto;
  placement::Mode placement = placement::Mode::kAuto;
  std::string profiles_folder;  // of name rules; empty: built-in ones only
  std::string profile;          // one of them, by name; empty: all that hold everywhere
  std::string trace_path;       // record a trace from the start
  bool meta_growth = false;     // a META file grows when it is nearly full
  uint64_t meta_size_max = 0;   // it grows to at most so many bytes; 0: as planned
};

// Who asks, as far as placement cares.
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
  bool of_context = false;  // the name is made of those of a program and a directory
  bool ignored = false;     // the mount's placement mode ignores hints
};

// What idle time was used for, since the mount.
struct IdleStatus {
  enum class State : uint8_t { kOff, kBusy, kWorking, kRested, kOnBattery };
  State state = State::kBusy;
  std::string how;  // what the device does, for people
  blockdev::Pressure pressure = blockdev::Pressure::kUnknown;
  uint64_t periods = 0;      // that were used
  uint64_t interrupted = 0;  // of these, by a request
  uint64_t failed = 0;
  std::string last_error;
  uint64_t copied_bytes = 0, erases = 0;  // by the device, as far as it tells
  uint64_t slowest_stop_us = 0;           // from a request to the end of the work
  uint64_t poweroffs_prepared = 0;
};

// What was asked for by name; not finished: there is more to do, or programs were at work.
struct MaintenanceRun {
  bool finished = false;
  uint64_t copied_bytes = 0, erases = 0;
  std::string how;
};

// A part of all free space was trimmed, from a block on; next: where to go on, none at the end.
struct FreeTrim {
  uint64_t bytes = 0;
  std::optional<BlockNo> next;
};

// Before a mount is shut down, kDefault flushes everything, as sync() does; kLogFlush flushes the
// metadata log and no file data; kNoLogFlush flushes nothing.
enum class ShutdownMode : uint8_t { kDefault, kLogFlush, kNoLogFlush };

// What becomes of labels.
struct HintDevice {
  uint16_t pstream_count = 1;
  bool ignored = false;   // as above
  std::string mechanism;  // how a write says its pStream (blockdev::DeviceInfo)
};

// The room of META, for people.
struct MetaRoom {
  uint64_t bytes = 0, bytes_max = 0;  // its size, and what it may grow to by itself
  bool grows = false;
  std::string advice;  // why a META that is nearly full does not grow, and what helps; or empty
};

struct Status {
  pmem::MetaClass meta_class{};
  std::string meta_medium;
  bool meta_log = false;
  std::string placement_mode;
  blockdev::DeviceInfo device_info;
  std::string kernel_transport;  // how requests come from the kernel; empty: nobody said
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
  ProcessMemory process;
  uint64_t cache_bytes = 0, cache_bytes_max = 0;
  // New data that waits in memory to be written, and what was deleted before it was.
  uint64_t write_cache_bytes = 0, never_written_bytes = 0;
  bool mirrored = false;        // META is kept twice
  std::string mirror_degraded;  // which copy is missing and why
  bool degraded_read_only = false;
  std::string degraded_reason;
};

// How far the last scrub of this mount came.
struct ScrubStatus {
  enum class State : uint8_t { kNever, kRunning, kStopped, kDone };
  struct Finding {
    InodeId inode;
    std::string what;
  };
  State state = State::kNever;
  uint64_t inodes = 0, inodes_in_all = 0;  // the latter about
  uint64_t bytes = 0;                      // of data read
  uint64_t damaged = 0;                    // objects and blocks
  uint64_t mended = 0;                     // damaged in one copy of META, whole in the other
  std::vector<Finding> findings;           // the first of them
};

// Sizes before and after a growth: bytes of both devices that the filesystem uses.
struct GrowOptions {
  std::optional<uint64_t> meta_bytes;  // META's size; without: what its device or DATA's files want
  bool meta_alone = false;             // DATA keeps its size, whatever its device has
  uint64_t planned_meta = 0;           // a size that META may grow to later
  bool dry_run = false;
};
struct Grown {
  struct Size {
    uint64_t data_bytes = 0, meta_bytes = 0, inodes_possible = 0;
    friend bool operator==(const Size&, const Size&) = default;
  };
  Size before, after;
  bool data_fixed = false;  // an emulated SSD, whose size is its flash's
};

class Filesystem {
 public:
  // Opens both devices, refuses a foreign, swapped or mismatched pair (EMEDIUMTYPE with a sentence
  // saying what to do), recovers, rebuilds META from the metadata log where open_pair() says so.
  static Result<std::unique_ptr<Filesystem>> mount(const std::string& meta_path,
                                                   const std::string& data,
                                                   const MountOptions& options, Clock& clock);
  virtual ~Filesystem() = default;     // like a crash unless unmount() was called
  virtual Result<void> unmount() = 0;  // may wait: drains, commits, trims, marks clean

  virtual InodeId root() const = 0;
  // ---- Names: as meta::Engine; create adds placement.
  virtual Result<meta::Attributes> lookup(InodeId parent, std::string_view name) = 0;
  virtual Result<meta::Attributes> create(InodeId parent, std::string_view name, uint32_t mode,
                                          uint64_t rdev, std::string_view symlink_target,
                                          const Requester& who) = 0;
  virtual Result<meta::Attributes> create_unnamed(InodeId parent, uint32_t mode,
                                                  const Requester& who) = 0;
  virtual Result<meta::Attributes> link(InodeId target, InodeId parent, std::string_view name) = 0;
  virtual Result<void> unlink(InodeId parent, std::string_view name) = 0;
  virtual Result<void> rmdir(InodeId parent, std::string_view name) = 0;
  // may wait: an inode moved over another is committed first. `push_dirty` asks the kernel for the
  // source's dirty pages (notify_inval_inode) and is called before that, if a file is replaced.
  virtual Result<void> rename(InodeId from, std::string_view name, InodeId to,
                              std::string_view new_name, uint32_t flags,
                              const std::function<void(InodeId)>& push_dirty,
                              const meta::Caller& caller = {}) = 0;
  // As the engine's: visit takes down what it needs, and asks nothing of the filesystem.
  virtual Result<void> read_directory(
      InodeId directory, uint64_t cookie,
      const std::function<bool(const meta::DirectoryEntry&)>& visit) = 0;
  virtual void look_ahead(InodeId directory, uint64_t cookie, size_t most) = 0;  // as the engine's
  // One more reference to each, for readdirplus. What is gone meanwhile is left out; `found` must
  // call nothing of this.
  virtual void reference(std::span<const InodeId> ids, const meta::Engine::Referenced& found) = 0;
  virtual void forget(InodeId id, uint64_t count) = 0;

  // ---- Attributes
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

  // ---- Data, all may wait
  virtual Result<size_t> read(InodeId id, uint64_t offset, Bytes out) = 0;  // short at the end
  // One call a WRITE request: its length is the request placement sees.
  virtual Result<void> write(InodeId id, uint64_t offset, ConstBytes in,
                             meta::WriteTimes times = meta::WriteTimes::kNow) = 0;
  virtual Result<void> truncate(InodeId id, uint64_t size) = 0;
  // FALLOC_FL_* modes: 0, KEEP_SIZE, PUNCH_HOLE|KEEP_SIZE, ZERO_RANGE[|KEEP_SIZE]; else EOPNOTSUPP.
  virtual Result<void> allocate(InodeId id, int mode, uint64_t offset, uint64_t length) = 0;
  virtual Result<uint64_t> seek(InodeId id, uint64_t offset, int whence) = 0;  // SEEK_DATA / HOLE
  virtual Result<void> fsync(InodeId id, bool data_only) = 0;
  virtual Result<void> sync() = 0;  // an epoch that covers everything written before

  // ---- Placement
  virtual Result<HintReply> hint_number(InodeId id, uint32_t number) = 0;
  virtual Result<HintReply> hint_name(InodeId id, std::string_view name) = 0;
  virtual Result<HintReply> hint_rw(InodeId id, uint32_t rw_hint) = 0;
  virtual Result<HintReply> hint_clear(InodeId id) = 0;
  virtual Result<HintReply> hint_query(InodeId id) = 0;
  // A vStream that exists, by name or, with an empty one, by number. ENOENT.
  virtual Result<HintReply> find_vstream(std::string_view name, uint32_t number) = 0;
  virtual HintDevice hint_device() const = 0;
  virtual placement::Placement& placement() = 0;

  // ---- Operation
  virtual Result<Status> status() = 0;
  // Whoever serves it says for status() how requests come, and why not another way. Literals.
  virtual void served_by(const char*, const char*) {}
  // Closes the gate, after the flush that `mode` asks for; waits for the requests inside, and stops
  // all background work. May wait. Nothing is written to DATA or META afterwards, not by unmount()
  // either: the next mount recovers as after a kill. Errors: EIO, it is shut down already; of the
  // flush, and then only kDefault leaves the mount as it was.
  virtual Result<void> shut_down(ShutdownMode mode) = 0;
  // Every inode that the kernel may have cached.
  virtual std::vector<InodeId> known_to_kernel() = 0;
  // Every request of the kernel passes through it, and every control request that may write.
  virtual Gate& gate() = 0;
  // shut_down() calls `forget` for each of known_to_kernel(). An empty function: nobody; no call is
  // under way when this returns.
  virtual void on_shut_down(std::function<void(InodeId)> forget) = 0;
  // Takes the room that DATA and META have got, while programs run. May wait. EBUSY: a growth is
  // under way; EROFS; those of meta::plan_growth(), before anything has changed.
  virtual Result<Grown> grow(const GrowOptions& options) = 0;
  // Each works for about so long and says whether there is more to do. May wait.
  // Frees and trims, then lets the device do its own work; nothing while programs are at work.
  virtual Result<MaintenanceRun> maintain(uint64_t milliseconds) = 0;
  // The same whatever programs do, after everything written so far has become durable.
  virtual Result<MaintenanceRun> prepare_poweroff(uint64_t milliseconds) = 0;
  // Trims all free space, as fstrim(8); in whole neighbourhoods, so also what was too small when it
  // was freed. EOPNOTSUPP where DATA cannot be trimmed.
  virtual Result<FreeTrim> trim_free(BlockNo from, uint64_t milliseconds) = 0;
  virtual Result<void> start_scrub() = 0;  // EBUSY: one is under way
  virtual void stop_scrub() = 0;           // may wait: it has ended when this returns
  virtual ScrubStatus scrub_status() = 0;
  virtual Result<void> start_trace(const std::string& path) = 0;
  virtual Result<void> stop_trace() = 0;
  virtual const meta::Geometry& geometry() const = 0;
};

}  // namespace streamfs::data
