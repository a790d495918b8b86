// The metadata engine: POSIX names, attributes, extents and blocks of one filesystem in META.
//
// It does no device I/O. Data floors give it what was written; it keeps two views of each inode:
// *committed* is what META holds, *current* adds changes whose data is not yet durable (size,
// times, new extents, truncations). Everything a caller reads is current. commit_inode() turns
// current into committed with journal records, after the caller has flushed the data device.
//
// Thread safety: every method may be called from any thread. Locks, in this order: the rename
// mutex, inodes by ascending InodeId (any other is only tried, and never waited for), then leaves
// (heap, allocator, orphans, journal rings). No lock is held across device I/O, because none
// happens here.
//
// What a crash leaves: every namespace and attribute change that returned is there whole; one that
// did not return is there whole or not at all. Of current-only changes nothing is there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/blob/xattr.h"
#include "fuse-fs/meta/block_allocator.h"
#include "fuse-fs/meta/checksums.h"
#include "fuse-fs/meta/conditional_record.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/inode_slots.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/orphans.h"
#include "fuse-fs/meta/store.h"
#include "pmem/region.h"

namespace streamfs::meta {

struct Attributes {
  InodeId id;
  uint32_t generation = 0;
  uint32_t mode = 0;  // type and permissions, as st_mode
  uint32_t nlink = 0, uid = 0, gid = 0;
  uint64_t size = 0;
  uint64_t blocks = 0;  // 4 KiB, current (delayed ones counted)
  Timestamp atime, mtime, ctime, btime;
  uint64_t rdev = 0;
  VStreamId vstream;
  uint8_t vstream_generation = 0;  // placement's: which use of that number is meant
  bool vstream_hinted = false;     // someone said it; then the generation is 0
};

struct Caller {
  uint32_t uid = 0, gid = 0;
  uint32_t umask = 0;  // applied unless the directory has a default ACL
};

// In set_xattr's flags: the caller may not keep the setgid bit where an access ACL sets the mode.
inline constexpr int kXattrKillSgid = 1 << 16;

struct CreateRequest {
  uint32_t mode = 0;  // with the file type, as asked for
  Caller caller;
  uint64_t rdev = 0;
  std::string_view symlink_target;
  VStreamId vstream;  // what placement chose
  bool vstream_hinted = false;
  uint8_t vstream_generation = 0;
};

// What setattr changes; absent fields stay.
struct AttributeChange {
  std::optional<uint32_t> mode;  // permission bits only
  std::optional<uint32_t> uid, gid;
  std::optional<Timestamp> atime, mtime, ctime;
  std::optional<VStreamId> vstream;  // 0 clears the hint
  bool clear_suid = false;           // setuid, and setgid where the group may execute
  bool clear_sgid = false;           // setgid where it may not: it marks mandatory locking
  // mtime and ctime of a regular file, nothing else, and current only: committed with the inode's
  // next commit. The kernel sends these after each write, rename and unlink.
  bool lazily = false;
};

struct DirectoryEntry {
  std::string_view name;
  InodeId id;
  uint32_t type;         // S_IFMT bits
  uint64_t next_cookie;  // give it back to go on after this entry
};

struct RenameResult {
  InodeId moved;
  std::optional<InodeId> replaced;  // lost this name; maybe its last
};

struct Space {
  uint64_t data_blocks = 0, free_blocks = 0;  // allocatable or becoming so (trims pending)
  uint64_t heap_units = 0, free_units = 0;
  uint64_t inodes_possible = 0, inodes_free = 0;  // their difference: in use
};

// The words of META that changes of metadata programmed, the journal's included, and the words of
// the 4 KiB blocks that each change touched at home: what a block file system would have written.
// Checksums of data count in neither. A change's blocks are counted when the journal is
// checkpointed.
struct MetadataWords {
  uint64_t programmed = 0, of_blocks = 0;
};

// A piece of a file on the device; hole and unwritten pieces read as zeroes.
struct Piece {
  FileBlock first;
  uint64_t length = 0;
  BlockNo block;  // valid unless hole
  bool hole = false;
  bool unwritten = false;
  VStreamId vstream;  // of the last write
};

// What a write does to mtime and ctime. A kernel with a writeback cache keeps them and tells them
// by itself, sometimes before the last of the writes they belong to has come.
enum class WriteTimes : uint8_t { kNow, kSetByKernel };

// What a finished write adds to an inode's current view. New pieces name blocks reserved from the
// allocator; overwritten blocks need only their checksums.
struct WriteResult {
  struct NewPiece {
    FileBlock first;
    BlockNo block;
    uint64_t length;
    VStreamId vstream;
  };
  struct BlockChecksum {
    BlockNo block;
    uint32_t crc;  // 0 is stored as 1
  };
  std::vector<NewPiece> added;
  std::vector<BlockChecksum> checksums;
  uint64_t end_offset = 0;  // the file is at least this long afterwards
  uint64_t epoch = 0;       // the data is durable once this epoch's flush returned
  WriteTimes times = WriteTimes::kNow;
};

// Used by the operations; defined in engine_impl.h.
class Change;
struct Locked;

class Engine {
 public:
  using Referenced = std::function<void(size_t place, const Attributes& attributes)>;
  struct Options {
    bool read_only = false;
    bool start_background = true;  // checkpointer; tests drive it by hand
    // Of inodes, extents and directory indexes that are in memory only because they may be asked
    // for again. What operations and pending commits need comes on top.
    uint64_t cache_bytes = 256ULL << 20;
  };
  // Recovers the journal; what it takes does not depend on how much META holds: allocators, lists
  // and indexes are read when they are used. `super` has been chosen by load_superblock().
  // Errors: EIO (a committed record is out of bounds), EINVAL (geometry).
  static Result<std::unique_ptr<Engine>> open(pmem::Region& region, const Superblock& super,
                                              Clock& clock, const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- Names. Names are 1..255 bytes without '/' or NUL: EINVAL / ENAMETOOLONG otherwise.
  // A successful lookup, create, mkdir, link … counts one reference for the returned inode;
  // forget() gives them back. An inode without names and references is freed.
  InodeId root() const { return InodeId{geometry_.super().root_inode}; }
  // "." is `parent` itself, whatever its type, and ".." of a directory is where it lies. ESTALE: a
  // number that no inode with a name has.
  Result<Attributes> lookup(InodeId parent, std::string_view name);
  // Files, directories, symlinks and nodes, by the type bits of mode. EEXIST, ENOSPC, EMLINK.
  Result<Attributes> create(InodeId parent, std::string_view name, const CreateRequest& request);
  Result<Attributes> create_unnamed(InodeId parent, const CreateRequest& request);
  Result<Attributes> link(InodeId target, InodeId parent, std::string_view name);
  // The inode that lost the name.
  Result<InodeId> unlink(InodeId parent, std::string_view name);
  Result<InodeId> rmdir(InodeId parent, std::string_view name);
  // flags: RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT (leaves a whiteout, of `caller`, in
  // the old place: character device 0, 0).
  Result<RenameResult> rename(InodeId from, std::string_view name, InodeId to,
                              std::string_view new_name, uint32_t flags, const Caller& caller = {});
  // From cookie 0; "." and ".." included. Stops when visit returns false (that entry comes again).
  // The directory is locked meanwhile: visit takes down what it needs, and asks nothing of it.
  Result<void> read_directory(InodeId directory, uint64_t cookie,
                              const std::function<bool(const DirectoryEntry&)>& visit);
  // Up to `most` entries from the cookie on will be asked for soon: gets them and their inodes
  // ready.
  void look_ahead(InodeId directory, uint64_t cookie, size_t most);
  // One more reference to an inode that was found in a directory. ESTALE: freed meanwhile.
  Result<Attributes> reference(InodeId id);
  // The same for many, in any order; what fails is left out. `found` is told each one's place among
  // `ids`, with locks held: it must not call the engine.
  void reference(std::span<const InodeId> ids, const Referenced& found);
  // Every inode that has references, the root apart.
  std::vector<InodeId> referenced() { return cache_.looked_up(); }
  // True when the inode has no name and no reference left: the caller frees it with free_orphan().
  bool forget(InodeId id, uint64_t count);
  // Frees the blocks and the slot of such an inode. Bounded records; resumed after a crash.
  Result<void> free_orphan(InodeId id);
  // Orphans left by the run before, to be freed in the background. Reads the whole list.
  std::vector<InodeId> leftover_orphans() { return orphans_.leftovers(); }

  // ---- Attributes
  Result<Attributes> attributes(InodeId id);
  Result<Attributes> set_attributes(InodeId id, const AttributeChange& change);
  Result<std::string> read_symlink(InodeId id);
  // Names: user.*, trusted.*, security.* and the two of ACLs, which are checked (EINVAL) and kept
  // in step with the mode; EOPNOTSUPP otherwise.
  Result<std::string> get_xattr(InodeId id, std::string_view name);  // ENODATA
  // flags: XATTR_CREATE, XATTR_REPLACE, kXattrKillSgid. E2BIG: a value over 64 KiB; ENOSPC: all of
  // an inode's over 64 KiB, or no room.
  Result<void> set_xattr(InodeId id, std::string_view name, std::string_view value, int flags);
  Result<std::vector<std::string>> list_xattr(InodeId id);
  Result<void> remove_xattr(InodeId id, std::string_view name);
  // Before the file's data changes. Costs nothing where there is no security.capability.
  Result<void> drop_capability(InodeId id);
  // ---- Scrubbing
  // Ids in use that are larger than `after`, ascending, about `most` of them; none: no more.
  std::vector<InodeId> inodes_after(InodeId after, size_t most);
  // Reads what META holds of an inode: its image, chains, entries, extents, attributes. EIO says
  // what is damaged; ESTALE: it is gone.
  Result<void> verify(InodeId id);
  // Of a META that is kept twice: EIO where the copies of what has no checksums (bitmaps, heap map,
  // vStreams) differ, so that nobody can say which is right; fsck can.
  Result<void> verify_maps();
  // Objects damaged in one copy of META and mended from the other, since it was opened.
  uint64_t mended() const { return region_.counters().mended; }
  MetadataWords metadata_words() const;
  // Free units and blocks are exact; inodes_free is, after a cut, no more than there are until
  // count_inodes() has looked at all of them: a little at each call, false when it is done.
  Space space();
  bool count_inodes() { return slots_.look_on(); }
  // Nothing is left of META's heap but what is kept so that deletions always work.
  bool heap_scarce() { return heap_.scarce(); }
  // Returns whether 90 % of META's heap is in use, or a change of many units may soon fail.
  bool heap_nearly_full() { return heap_.nearly_full(); }

  // ---- Data. The caller serialises overlapping writes, reads and truncations of one inode.
  // Pieces covering [first, first + count) in order, holes included; blocks past the end are holes.
  Result<std::vector<Piece>> map(InodeId id, FileBlock first, uint64_t count);
  // Next data (or hole) block at or after `from` within the file's size; ENXIO when there is none.
  Result<FileBlock> seek_data(InodeId id, FileBlock from);
  Result<FileBlock> seek_hole(InodeId id, FileBlock from);
  // Marks the checksums of blocks about to be overwritten as not known: durable when it returns
  // (one fence at most, none if they are already). Forgets their pending checksums.
  Result<void> begin_overwrite(InodeId id, std::span<const Piece> overwritten);
  // The write is complete on the device: current view follows, and mtime and ctime if they are to.
  // New pieces that name the blocks of an unwritten extent make it written. `room` is from
  // slot_room(), of two slots for each of them; what it does not take stays there.
  Result<void> finish_write(InodeId id, const WriteResult& result, SlotRoom& room);
  Result<void> finish_write(InodeId id, const WriteResult& result) {
    SlotRoom none;
    return finish_write(id, result, none);
  }
  // Room for so many extents, whoever gets them. The reserve stays. ENOSPC.
  Result<SlotRoom> slot_room(uint64_t slots);
  // Current size; blocks past a smaller one leave the current view. The caller has zeroed the tail
  // of the last block. Committed with the inode's next commit, but what is longer than it was no
  // earlier than what a write before made longer.
  Result<void> set_size(InodeId id, uint64_t size);
  // Removes whole blocks from the current view (punch).
  Result<void> remove_range(InodeId id, FileBlock first, uint64_t count);
  // Unwritten extents need format version kUnwrittenVersion. The next two calls are durable when
  // they return, as changes of names are.
  //
  // Fills holes with these pieces, of blocks reserved from the allocator; after an error those are
  // free again. `room`: a slot for each of unwritten_extents(), and one more.
  Result<void> preallocate(InodeId id, std::span<const WriteResult::NewPiece> pieces,
                           SlotRoom& room);
  // Turns written blocks into unwritten ones: they read as zeroes, and the file keeps them. EBUSY
  // while a change of the file is not committed. `room`: two slots for each of unwritten_extents(),
  // and one more.
  Result<void> unwrite(InodeId id, FileBlock first, uint64_t count, SlotRoom& room);
  // Makes what was finished up to `epoch` committed, and the size and times with it. One fence for
  // an ordinary file; several ring-sized records for a badly fragmented one.
  Result<void> commit_inode(InodeId id, uint64_t epoch);
  // The same ahead of the flush of data written after epoch `flushed`, by one conditional record
  // (conditional_record.h). Returns false, and has done nothing, if the inode cannot be committed
  // ahead. Requires: a journal whose sink keeps conditions.
  Result<bool> commit_ahead(InodeId id, uint64_t epoch, uint64_t flushed);
  bool dirty(InodeId id);  // current differs from committed
  // Not only in its times: what was written cannot be read back without a commit.
  bool needs_commit(InodeId id);
  // Stored checksums of blocks, 0 = not known.
  void checksums(BlockNo first, std::span<uint32_t> out) { checksums_.read(first, out); }
  // A block read and found intact whose checksum was not known: remember it (lazily flushed).
  void learn_checksum(BlockNo block, uint32_t crc) { checksums_.learn(block, crc); }
  // A block was read whose checksum is this one and not the stored one: true if a copy of META has
  // it, from which the other is mended.
  bool mend_checksum(BlockNo block, uint32_t crc) { return checksums_.mend(block, crc); }

  // Takes what `larger`, of plan_growth(), adds; the region is that large already. One caller at a
  // time, beside everything else. `announce` is called with the superblock that META has then,
  // durably, before anything of what is new is used; if it fails, nothing of it will be.
  // What a crash leaves: the old size or the new one, and all files.
  using Announce = std::function<Result<void>(const Superblock&)>;
  Result<void> grow(const Superblock& larger, const Announce& announce);

  // META that was kept twice goes on with one copy: its superblock counts one attachment more and
  // has this token from now on. Stored and fenced; the caller syncs. Beside everything else.
  Result<void> attach_again(uint32_t mirror_token);
  // META has this format version, if it is higher. Stored and fenced; the caller syncs.
  Result<void> raise_version(uint32_t version);
  // META is not to be believed by the next mount: its superblock names a boot that never was.
  // Stored and fenced; the caller syncs.
  Result<void> distrust();
  Superblock superblock();  // as META has it

  // About what inodes, extents and directory indexes take in memory.
  uint64_t cached_bytes() const { return cache_.bytes(); }

  BlockAllocator& blocks() { return blocks_; }
  Journal& journal() { return journal_; }
  const Geometry& geometry() const { return geometry_; }

  // ---- vStream table (placement's; it keeps the meaning)
  std::vector<VStreamSlot> load_vstreams();  // index = slot
  Result<void> store_vstream(uint32_t slot, const VStreamSlot& value);
  uint32_t vstream_capacity() const;

  // Everything committed is home and the superblock says clean, and where the metadata log ends
  // (LogEnd, packed; 0: there is none, or the next mount has to begin it). Nothing may follow but
  // reads.
  Result<void> close_clean(uint64_t log_end);

 private:
  Engine(pmem::Region& region, const Geometry& geometry, Clock& clock, const Options& options);
  Result<void> start(const Options& options);
  Result<Superblock> change_superblock(const std::function<void(Superblock&)>& change);
  // ---- Common to all operations (engine.cc)
  Store store() { return {region_, geometry_, journal_}; }
  Change change();
  uint64_t now();  // PackedTime
  Result<void> writable() const;
  Result<Locked> lock_inode(InodeId id);      // ESTALE once freed
  Result<Locked> lock_directory(InodeId id);  // ENOTDIR
  Result<Directory*> entries(Inode& directory);
  Result<ExtentMap*> extents(Inode& inode);  // EINVAL unless a regular file
  Attributes attributes_of(const Inode& inode) const;
  Attributes referenced(Inode& inode);  // counts a reference for the caller
  Result<Attributes> lookup_itself(InodeId id);

  Result<std::string> target_of(const Inode& symlink) const;
  Result<void> verify_directory(InodeId id, const InodeImage& image) const;
  Result<void> verify_extents(InodeId id, const InodeImage& image);
  Result<void> verify_blob(InodeId id, uint64_t first) const;

  // ---- Names
  struct NewInode;  // on its way into META (engine_impl.h)
  Result<NewInode> prepare_inode(Change& change, const Inode& parent, const CreateRequest& request,
                                 uint32_t nlink);
  Result<void> put_symlink(Change& change, NewInode& inode, std::string_view target);
  std::pair<Result<TxId>, Locked> commit_new(Change& change, NewInode& made);
  void touch(Change& change, Inode& directory);
  Result<InodeRef> named(InodeId id);
  Result<void> lock_all(InodeLocks& locks, std::initializer_list<InodeId> directories,
                        std::span<const InodeId> more);
  Result<bool> try_lock(InodeLocks& locks, InodeId id);
  // Removes a name; with its last one, the inode joins the orphans.
  Result<Orphans::Claim> put_drop_name(Change& change, Inode& inode);
  Result<InodeId> remove_name(InodeId parent, std::string_view name, bool directory);
  Result<InodeId> remove_found(Inode& from, const Directory::Found& found, Inode& inode,
                               bool directory);
  Result<void> check_removable(Inode& inode, bool directory);

  struct Rename;
  using Hints = std::array<InodeId, 2>;  // the inodes that the two names led to at the last try
  Result<std::optional<RenameResult>> try_rename(InodeId from, std::string_view name, InodeId to,
                                                 std::string_view new_name, uint32_t flags,
                                                 const Caller& caller, Hints& hints);
  Result<void> check_rename(const Rename& rename, uint32_t flags);
  Result<void> check_replaced(const Rename& rename);
  Result<void> check_not_inside(InodeId moved, InodeId directory) const;
  Result<std::optional<NewInode>> put_vacate(Change& change,
                                             Rename& rename);  // a whiteout, or none
  Result<RenameResult> move_name(Rename& rename, std::string_view new_name);
  Result<RenameResult> exchange_names(Rename& rename, const Directory::Found& target, Inode& other);
  void put_moved(Change& change, Inode& moved, Inode& from, Inode& to);

  // ---- Orphans
  Result<void> drop_chain(Inode& inode, UnitKind kind);
  Result<void> drop_blob(Inode& inode, uint64_t InodeImage::* pointer);
  Result<void> drop_inode(Inode& inode);
  Result<void> collect_runs(uint64_t unit, std::vector<BlockRun>& runs) const;
  Result<TxId> commit_drop(Change& change, const std::vector<uint64_t>& units,
                           const std::vector<BlockRun>& runs);
  void discard_current(Inode& inode);

  // ---- Extended attributes
  Result<XattrMap> xattrs(const Inode& inode) const;
  Result<void> set_acl(InodeId id, std::string_view name, std::string_view value, bool kill_sgid);
  Result<NewBlob> put_xattrs(Change& change, InodeId id, InodeImage& image,
                             const XattrMap& attributes);
  Result<void> commit_xattrs(Change& change, Inode& inode, const XattrMap& attributes);
  Result<void> commit_without_capability(Change& change, Inode& inode);
  Result<std::optional<Acl>> default_acl(const Inode& directory) const;
  Result<NewBlob> put_permissions(Change& change, InodeId id, InodeImage& image,
                                  const Inode& parent, uint32_t umask);

  // ---- Data
  void discard(const std::vector<ExtentMap::Dropped>& runs);
  void store_new_checksums(const WriteResult& result, Inode& inode);
  pmem::Flushed publish_checksums(Inode& inode, uint64_t epoch);
  pmem::Flushed flush_new_checksums(const Inode& inode, uint64_t epoch);
  Result<void> commit_steps(Inode& inode, uint64_t epoch, pmem::Flushed checksums = {});
  Result<bool> commit_step(Inode& inode, uint64_t epoch, pmem::Flushed checksums,
                           std::span<const DataCondition> conditions = {});
  Result<void> commit_plan(Inode& inode, Change& change, ExtentMap::Plan plan);
  Result<void> finish_extending(Inode& inode);
  void take_back(ExtentMap& extents, std::span<const WriteResult::NewPiece> pieces);
  static void put_current(Inode& inode, InodeImage& next, uint64_t epoch,
                          const ExtentMap::Plan& plan);
  static void size_committed(Inode& inode, uint64_t epoch);

  pmem::Region& region_;
  Geometry geometry_;
  Mutex super_mutex_;                              // leaf
  Superblock super_ SFS_GUARDED_BY(super_mutex_);  // as META has it
  Clock& clock_;
  const bool read_only_;
  Journal journal_;
  // Each has a mutex that every thread takes, so each begins a cache line of its own.
  alignas(kLineSize) Heap heap_;
  alignas(kLineSize) InodeSlots slots_;
  alignas(kLineSize) Orphans orphans_;
  alignas(kLineSize) BlockAllocator blocks_;
  Checksums checksums_;
  InodeCache cache_;
  InodeRef root_;       // held until the end: the kernel refers to the root without a lookup
  Mutex rename_mutex_;  // before every inode: directories change parents one at a time
};

// ---- Making and finding a filesystem
inline constexpr uint64_t kMeanFileBytes = 16 * 1024;  // as mke2fs plans its inodes

struct FormatOptions {
  uint64_t data_blocks = 0;
  uint64_t mean_file_bytes = kMeanFileBytes;
  bool checksums = true;
  bool meta_log = false;
  bool mirror = false;  // META is kept twice
  std::string label;
  std::array<uint8_t, 16> uuid{};
  std::string data_identity;
  uint64_t created_seconds = 0;
  uint32_t random_seed = 0;
  uint32_t version = kFormatVersion;
};
// Bytes of META with one file for each mean_file_bytes of DATA: a META file grows to this size.
uint64_t meta_size_max(const FormatOptions& options);
uint64_t meta_size_max(const Superblock& super);
// Bytes that a META file begins with.
uint64_t first_meta_size(const FormatOptions& options);
// Files that fit an empty filesystem with a META of so many bytes, and free heap units. A file has
// one or two extents and a name of up to 48 bytes; a directory has 8 entries.
uint64_t inodes_possible(const Superblock& super, uint64_t meta_size);
uint64_t files_fitting(uint64_t heap_units);
// The geometry a META of this size gets; ENOSPC with the needed size when too small.
Result<Superblock> plan_format(uint64_t meta_size, pmem::MetaClass meta_class,
                               const FormatOptions& options);
// Writes an empty filesystem; the superblocks last. META is zeroed first.
Result<void> format(pmem::Region& region, const Superblock& super, Timestamp now);
// The valid superblock with the larger generation. EINVAL: not a streamfs META (foreign or empty);
// EMEDIUMTYPE: of another format version; EIO: both copies damaged (magic seen, checksum wrong).
// Repairs the damaged copy if `repair`.
Result<Superblock> load_superblock(pmem::Region& region, bool repair);
Result<void> store_superblock(pmem::Region& region, Superblock super);  // both copies, alternating

// ---- META kept twice (pmem/mirror_region.h)
// Makes `region` a copy of `from`, rings and all, whose superblock is this one. It is marked
// unfinished first and gets its superblocks last; `from` is only read. Nobody uses either
// meanwhile.
Result<void> make_copy(const pmem::Region& from, pmem::Region& region, Superblock super);
bool is_unfinished_copy(const pmem::Region& region);

}  // namespace streamfs::meta
