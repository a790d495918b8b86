// The metadata engine: POSIX names, attributes, extents and blocks of one filesystem in META.
//
// The engine does no device I/O. The data path tells it about finished writes. It keeps two views
// of each inode: *committed* is what META holds; *current* adds changes whose data is not durable
// yet (size, times, new extents, truncations). Callers read the current view. commit_inode() turns
// current into committed with journal records, after the caller has flushed the data device.
//
// Thread safety: any thread may call any method. Locks, in this order: the rename mutex, inodes by
// ascending InodeId (an inode out of that order is only tried, never waited for), then leaves
// (heap, allocator, orphans, journal rings). No lock is held across device I/O.
//
// After a crash: each change of names or attributes is there whole or not at all. In a persistent
// META, and after a kill in any META, a change that returned is there. After a power cut a META of
// another class has the changes that data/durability.h made durable. Changes of the current view
// alone are lost.
//
// Errors, beside those that a method names: ESTALE, the inode was freed; EIO, META is damaged;
// EROFS for every change, if META is open read-only.
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
#include "fuse-fs/meta/engine_values.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/inode_cache.h"
#include "fuse-fs/meta/inode_slots.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/orphans.h"
#include "fuse-fs/meta/store.h"
#include "pmem/region.h"

namespace streamfs::meta {

// The operations use these; engine_impl.h defines them.
class Change;
struct Locked;

class Engine {
 public:
  using Referenced = std::function<void(size_t place, const Attributes& attributes)>;
  struct Options {
    bool read_only = false;
    bool start_background = true;  // checkpointer; tests call its steps themselves
    // Limit for cached inodes, extents and directory indexes. The memory that operations and
    // pending commits need is not limited by it.
    uint64_t cache_bytes = 256ULL << 20;
  };
  // Recovers the journal and opens META. The time that this takes does not depend on how much META
  // holds, because allocators, lists and indexes are read at their first use.
  // Requires: load_superblock() has chosen `super`.
  // Errors: EIO, the journal, the orphan list or the root is damaged; EINVAL, the geometry is
  // impossible or larger than the region.
  static Result<std::unique_ptr<Engine>> open(pmem::Region& region, const Superblock& super,
                                              Clock& clock, const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- Names. Names are 1..255 bytes without '/' or NUL: EINVAL / ENAMETOOLONG otherwise.
  // A successful lookup, create, link … counts one reference for the returned inode; forget() gives
  // references back. free_orphan() frees an inode that has neither names nor references.
  InodeId root() const { return InodeId{geometry_.super().root_inode}; }
  // Looks up a name. "." is `parent` itself, whatever its type, and ".." is a directory's parent.
  // Errors: ENOENT; ESTALE, no inode with a name has the number `parent`.
  Result<Attributes> lookup(InodeId parent, std::string_view name);
  // Creates a file, directory, symlink or node, by the type bits of mode.
  // Errors: EEXIST, ENOSPC, EMLINK.
  Result<Attributes> create(InodeId parent, std::string_view name, const CreateRequest& request);
  Result<Attributes> create_unnamed(InodeId parent, const CreateRequest& request);
  Result<Attributes> link(InodeId target, InodeId parent, std::string_view name);
  // unlink() and rmdir() return the inode that lost the name.
  Result<InodeId> unlink(InodeId parent, std::string_view name);
  Result<InodeId> rmdir(InodeId parent, std::string_view name);
  // flags: RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT (leaves a whiteout under the old
  // name: a character device 0, 0 that belongs to `caller`).
  Result<RenameResult> rename(InodeId from, std::string_view name, InodeId to,
                              std::string_view new_name, uint32_t flags, const Caller& caller = {});
  // Visits the entries from a cookie on (0: from the first), "." and ".." included. Stops at the
  // entry for which `visit` returns false; the cookie before that entry leads to it again. The
  // directory is locked meanwhile: `visit` must not ask the engine about it.
  Result<void> read_directory(InodeId directory, uint64_t cookie,
                              const std::function<bool(const DirectoryEntry&)>& visit);
  // Prefetches into the CPU's cache what the next read_directory() from this cookie and reference()
  // will read: up to `most` entries, and those of their inodes that are in memory.
  void look_ahead(InodeId directory, uint64_t cookie, size_t most);
  // Counts one more reference to an inode that was found in a directory. Errors: ESTALE, the inode
  // was freed meanwhile.
  Result<Attributes> reference(InodeId id);
  // Does the same for many inodes, in any order, and leaves out those that fail. `found` gets each
  // inode's place in `ids`. It runs with locks held and must not call the engine.
  void reference(std::span<const InodeId> ids, const Referenced& found);
  // Returns every inode that has references. (The kernel refers to the root without any.)
  std::vector<InodeId> referenced() { return cache_.looked_up(); }
  // Gives back `count` references. Returns true if the inode has no name and no reference left; the
  // caller then frees it with free_orphan().
  bool forget(InodeId id, uint64_t count);
  // Frees the blocks and the slot of an inode without names and references, in bounded records.
  // Succeeds if the inode is freed already. Errors: EBUSY, it has a name or a reference. After a
  // crash: the next mount frees the rest.
  Result<void> free_orphan(InodeId id);
  // Returns the orphans that an earlier mount left, to be freed in the background. Reads the whole
  // list.
  std::vector<InodeId> leftover_orphans() { return orphans_.leftovers(); }

  // ---- Attributes
  Result<Attributes> attributes(InodeId id);
  Result<Attributes> set_attributes(InodeId id, const AttributeChange& change);
  Result<std::string> read_symlink(InodeId id);
  // Names are user.*, trusted.*, security.* and the two of ACLs; other names fail with EOPNOTSUPP.
  // ACLs are checked (EINVAL) and kept in step with the mode.
  Result<std::string> get_xattr(InodeId id, std::string_view name);  // ENODATA
  // flags: XATTR_CREATE, XATTR_REPLACE, kXattrKillSgid.
  // Errors: E2BIG, the value has more than 64 KiB; ENOSPC, all attributes of the inode have more
  // than 64 KiB, or META has no room.
  Result<void> set_xattr(InodeId id, std::string_view name, std::string_view value, int flags);
  Result<std::vector<std::string>> list_xattr(InodeId id);
  Result<void> remove_xattr(InodeId id, std::string_view name);
  // Removes security.capability, if the inode has it. Call it before the file's data changes.
  Result<void> drop_capability(InodeId id);
  // ---- Scrubbing
  // Returns about `most` ids in use that are larger than `after`, ascending. Empty: there are none.
  std::vector<InodeId> inodes_after(InodeId after, size_t most);
  // Reads everything that META holds of an inode: its image, chains, entries, extents, attributes.
  // Mends what is damaged in one copy of META only.
  // Errors: EIO, which names the damage; ESTALE, the inode is gone.
  Result<void> verify(InodeId id);
  // Compares the copies of a META that is kept twice where META has no checksums: bitmaps, heap map
  // and vStreams. Errors: EIO, the copies differ, so either may be wrong; fsck.streamfs repairs
  // that.
  Result<void> verify_maps();
  // Returns how many objects were damaged in one copy of META and mended from the other since META
  // was opened.
  uint64_t mended() const { return region_.counters().mended; }
  MetadataWords metadata_words();
  // Free units and blocks are exact. After a crash, the number of inodes in use is an upper bound
  // until count_inodes() has looked at every inode unit.
  Space space();
  // Looks at some more inode units. Returns false when it has looked at all.
  bool count_inodes() { return slots_.look_on(); }
  // Returns whether META's heap is down to the reserve that keeps deletions possible.
  bool heap_scarce() { return heap_.scarce(); }
  // Returns whether 90 % of META's heap is in use, or a change of many units may soon fail.
  bool heap_nearly_full() { return heap_.nearly_full(); }

  // ---- Data. The caller serialises overlapping writes, reads and truncations of one inode.
  // Returns the pieces that cover [first, first + count) in order, holes included. Blocks past the
  // end of the file are holes or unwritten. Errors: EFBIG.
  Result<std::vector<Piece>> map(InodeId id, FileBlock first, uint64_t count);
  // These two return the first block of data, or of a hole, at or after `from`. Unwritten blocks
  // count as a hole, and so does the end of the file. Errors: ENXIO, `from` is past the end of the
  // file, or no data follows.
  Result<FileBlock> seek_data(InodeId id, FileBlock from);
  Result<FileBlock> seek_hole(InodeId id, FileBlock from);
  // Marks the checksums of blocks about to be overwritten as not known, durably when it returns
  // (one fence at most, none if they are marked already). Forgets their pending checksums.
  Result<void> begin_overwrite(InodeId id, std::span<const Piece> overwritten);
  // Adds a write that is complete on the device, or is cached, to the current view. A new piece
  // that names the blocks of an unwritten extent makes them written. `room` is from slot_room(),
  // with two slots for each such piece; units that are not needed stay in it. Errors: ENOSPC,
  // META's heap is down to its reserve and the commit might need a unit; the view is then
  // unchanged.
  Result<void> finish_write(InodeId id, const WriteResult& result, SlotRoom& room);
  Result<void> finish_write(InodeId id, const WriteResult& result) {
    SlotRoom none;
    return finish_write(id, result, none);
  }
  // Takes units of META that have room for so many extents of any files. Errors: ENOSPC, only the
  // reserve is left.
  Result<SlotRoom> slot_room(uint64_t slots);
  // Sets the current size; blocks past a smaller size leave the current view. The inode's next
  // commit has the new size, with one exception: while the growth by an earlier write waits for the
  // flush of its epoch, a larger size waits for that flush, too. Requires: the caller has zeroed
  // the bytes behind the smaller of the two sizes in its block. Errors: EFBIG.
  Result<void> set_size(InodeId id, uint64_t size);
  // Removes whole blocks from the current view (punches a hole).
  Result<void> remove_range(InodeId id, FileBlock first, uint64_t count);
  // Unwritten extents need format version kUnwrittenVersion. The next two calls are durable when
  // they return, as changes of names are.
  //
  // Fills holes with unwritten extents of these pieces, whose blocks are reserved from the
  // allocator. After an error the blocks are free again, or will be with the inode's next commit.
  // `room`: a slot for each of unwritten_extents(), and one more.
  Result<void> preallocate(InodeId id, std::span<const WriteResult::NewPiece> pieces,
                           SlotRoom& room);
  // Turns written blocks into unwritten ones: they read as zeroes, and the file keeps them.
  // `room`: two slots for each of unwritten_extents(), and one more.
  // Errors: EBUSY, the file has changes of extents or size that are not committed.
  Result<void> unwrite(InodeId id, FileBlock first, uint64_t count, SlotRoom& room);
  // Commits everything that was finished up to `epoch`, with size and times. An ordinary file takes
  // one record and one fence; a badly fragmented one takes several records. Requires: the device
  // was flushed after that epoch. Errors: ENOSPC, META has no unit for the extents; the view stays
  // dirty.
  Result<void> commit_inode(InodeId id, uint64_t epoch);
  // Does the same ahead of the flush of data written after epoch `flushed`, by one conditional
  // record (conditional_record.h). Returns false, and has done nothing, if the inode cannot be
  // committed ahead. Requires: a journal whose sink keeps conditions.
  Result<bool> commit_ahead(InodeId id, uint64_t epoch, uint64_t flushed);
  // Commits the same by one record, after a fence that covers `entries`, the lines of the intent
  // log that have the data which no flush has covered. Returns false, and has done nothing, if that
  // takes more than one record.
  Result<bool> commit_logged(InodeId id, uint64_t epoch, pmem::Flushed entries);
  bool dirty(InodeId id);  // current differs from committed
  // Returns whether current differs from committed in more than times, so that data written since
  // cannot be read back without a commit.
  bool needs_commit(InodeId id);
  // Reads the checksums that blocks should have. 0 = not known.
  void checksums(BlockNo first, std::span<uint32_t> out) { checksums_.read(first, out); }
  // Stores the checksum of a block that was read and whose checksum is not known. Does not flush.
  void learn_checksum(BlockNo block, uint32_t crc) { checksums_.learn(block, crc); }
  // Call it for a block that was read and has the checksum `crc`, not the stored one. Returns
  // whether another copy of META has this checksum; if so, the first copy is mended.
  bool mend_checksum(BlockNo block, uint32_t crc) { return checksums_.mend(block, crc); }

  // Adds the space that `larger`, a result of plan_growth(), has more. `announce` is called with
  // META's new superblock once that is durable, and before any new space is used. If `announce`
  // fails, this mount uses no new space. Requires: the region has the new size already.
  // Thread safety: one caller at a time, beside all other calls.
  // After a crash: META has the old size or the new one, and all files.
  using Announce = std::function<Result<void>(const Superblock&)>;
  Result<void> grow(const Superblock& larger, const Announce& announce);

  // The next three calls store and fence the superblock; the caller syncs. They may run beside all
  // other calls.
  //
  // Lets a META that was kept twice go on with one copy: counts one attachment more and sets this
  // token.
  Result<void> attach_again(uint32_t mirror_token);
  // Raises META's format version to this one, if it is lower.
  Result<void> raise_version(uint32_t version);
  // Makes the next mount distrust META: the superblock names a boot that never was.
  Result<void> distrust();
  Superblock superblock();  // as META has it

  // Returns about how much memory inodes, extents and directory indexes take.
  uint64_t cached_bytes() const { return cache_.bytes(); }

  BlockAllocator& blocks() { return blocks_; }
  Journal& journal() { return journal_; }
  const Geometry& geometry() const { return geometry_; }

  // ---- vStream table (placement's; it keeps the meaning)
  std::vector<VStreamSlot> load_vstreams();  // index = slot
  Result<void> store_vstream(uint32_t slot, const VStreamSlot& value);
  uint32_t vstream_capacity() const;

  // Brings everything committed home, makes it durable, and marks the superblock clean. `log_end`
  // says where the metadata log ends (LogEnd, packed); 0: there is no log, or the next mount must
  // begin it. The caller syncs the region. Requires: only reads follow.
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
  // Adds to the change: the inode loses a name. If that is the last name, it joins the orphans.
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
  enum class Steps : uint8_t { kMany, kOne };
  Result<bool> commit_step(Inode& inode, uint64_t epoch, pmem::Flushed checksums,
                           std::span<const DataCondition> conditions = {},
                           Steps steps = Steps::kMany);
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
  // Each of these has a mutex that every thread takes, so each begins a cache line of its own.
  alignas(kLineSize) Heap heap_;
  alignas(kLineSize) InodeSlots slots_;
  alignas(kLineSize) Orphans orphans_;
  alignas(kLineSize) BlockAllocator blocks_;
  Checksums checksums_;
  InodeCache cache_;
  InodeRef root_;       // held until the end: the kernel refers to the root without a lookup
  Mutex rename_mutex_;  // before every inode: directories change parents one at a time
};

}  // namespace streamfs::meta
