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

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/block_allocator.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/journal.h"
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

class Inode;  // in memory; opaque above meta

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
  virtual ~Engine();

  // ---- Names. Names are 1..255 bytes without '/' or NUL: EINVAL / ENAMETOOLONG otherwise.
  // A successful lookup, create, mkdir, link … counts one reference for the returned inode;
  // forget() gives them back. An inode without names and references is freed.
  virtual InodeId root() const = 0;
  // "." is `parent` itself, whatever its type, and ".." of a directory is where it lies. ESTALE: a
  // number that no inode with a name has.
  virtual Result<Attributes> lookup(InodeId parent, std::string_view name) = 0;
  // Files, directories, symlinks and nodes, by the type bits of mode. EEXIST, ENOSPC, EMLINK.
  virtual Result<Attributes> create(InodeId parent, std::string_view name,
                                    const CreateRequest& request) = 0;
  virtual Result<Attributes> create_unnamed(InodeId parent, const CreateRequest& request) = 0;
  virtual Result<Attributes> link(InodeId target, InodeId parent, std::string_view name) = 0;
  // The inode that lost the name.
  virtual Result<InodeId> unlink(InodeId parent, std::string_view name) = 0;
  virtual Result<InodeId> rmdir(InodeId parent, std::string_view name) = 0;
  // flags: RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT (leaves a whiteout, of `caller`, in
  // the old place: character device 0, 0).
  virtual Result<RenameResult> rename(InodeId from, std::string_view name, InodeId to,
                                      std::string_view new_name, uint32_t flags,
                                      const Caller& caller = {}) = 0;
  // From cookie 0; "." and ".." included. Stops when visit returns false (that entry comes again).
  // The directory is locked meanwhile: visit takes down what it needs, and asks nothing of it.
  virtual Result<void> read_directory(InodeId directory, uint64_t cookie,
                                      const std::function<bool(const DirectoryEntry&)>& visit) = 0;
  // Up to `most` entries from the cookie on will be asked for soon: gets them and their inodes
  // ready.
  virtual void look_ahead(InodeId directory, uint64_t cookie, size_t most) = 0;
  // One more reference to an inode that was found in a directory. ESTALE: freed meanwhile.
  virtual Result<Attributes> reference(InodeId id) = 0;
  // The same for many, in any order; what fails is left out. `found` is told each one's place among
  // `ids`, with locks held: it must not call the engine.
  virtual void reference(std::span<const InodeId> ids, const Referenced& found) = 0;
  // Every inode that has references, the root apart.
  virtual std::vector<InodeId> referenced() = 0;
  // True when the inode has no name and no reference left: the caller frees it with free_orphan().
  virtual bool forget(InodeId id, uint64_t count) = 0;
  // Frees the blocks and the slot of such an inode. Bounded records; resumed after a crash.
  virtual Result<void> free_orphan(InodeId id) = 0;
  // Orphans left by the run before, to be freed in the background. Reads the whole list.
  virtual std::vector<InodeId> leftover_orphans() = 0;

  // ---- Attributes
  virtual Result<Attributes> attributes(InodeId id) = 0;
  virtual Result<Attributes> set_attributes(InodeId id, const AttributeChange& change) = 0;
  virtual Result<std::string> read_symlink(InodeId id) = 0;
  // Names: user.*, trusted.*, security.* and the two of ACLs, which are checked (EINVAL) and kept
  // in step with the mode; EOPNOTSUPP otherwise.
  virtual Result<std::string> get_xattr(InodeId id, std::string_view name) = 0;  // ENODATA
  // flags: XATTR_CREATE, XATTR_REPLACE, kXattrKillSgid. E2BIG: a value over 64 KiB; ENOSPC: all of
  // an inode's over 64 KiB, or no room.
  virtual Result<void> set_xattr(InodeId id, std::string_view name, std::string_view value,
                                 int flags) = 0;
  virtual Result<std::vector<std::string>> list_xattr(InodeId id) = 0;
  virtual Result<void> remove_xattr(InodeId id, std::string_view name) = 0;
  // Before the file's data changes. Costs nothing where there is no security.capability.
  virtual Result<void> drop_capability(InodeId id) = 0;
  // ---- Scrubbing
  // Ids in use that are larger than `after`, ascending, about `most` of them; none: no more.
  virtual std::vector<InodeId> inodes_after(InodeId after, size_t most) = 0;
  // Reads what META holds of an inode: its image, chains, entries, extents, attributes. EIO says
  // what is damaged; ESTALE: it is gone.
  virtual Result<void> verify(InodeId id) = 0;
  // Of a META that is kept twice: EIO where the copies of what has no checksums (bitmaps, heap map,
  // vStreams) differ, so that nobody can say which is right; fsck can.
  virtual Result<void> verify_maps() = 0;
  // Objects damaged in one copy of META and mended from the other, since it was opened.
  virtual uint64_t mended() const = 0;
  virtual MetadataWords metadata_words() const = 0;
  // Free units and blocks are exact; inodes_free is, after a cut, no more than there are until
  // count_inodes() has looked at all of them: a little at each call, false when it is done.
  virtual Space space() = 0;
  virtual bool count_inodes() = 0;
  // Nothing is left of META's heap but what is kept so that deletions always work.
  virtual bool heap_scarce() = 0;
  virtual bool heap_nearly_full() = 0;  // 90 %, or a change of many units may soon fail

  // ---- Data. The caller serialises overlapping writes, reads and truncations of one inode.
  // Pieces covering [first, first + count) in order, holes included; blocks past the end are holes.
  virtual Result<std::vector<Piece>> map(InodeId id, FileBlock first, uint64_t count) = 0;
  // Next data (or hole) block at or after `from` within the file's size; ENXIO when there is none.
  virtual Result<FileBlock> seek_data(InodeId id, FileBlock from) = 0;
  virtual Result<FileBlock> seek_hole(InodeId id, FileBlock from) = 0;
  // Marks the checksums of blocks about to be overwritten as not known: durable when it returns
  // (one fence at most, none if they are already). Forgets their pending checksums.
  virtual Result<void> begin_overwrite(InodeId id, std::span<const Piece> overwritten) = 0;
  // The write is complete on the device: current view follows, and mtime and ctime if they are to.
  // New pieces that name the blocks of an unwritten extent make it written. `room` is from
  // slot_room(), of two slots for each of them; what it does not take stays there.
  virtual Result<void> finish_write(InodeId id, const WriteResult& result, SlotRoom& room) = 0;
  Result<void> finish_write(InodeId id, const WriteResult& result) {
    SlotRoom none;
    return finish_write(id, result, none);
  }
  // Room for so many extents, whoever gets them. The reserve stays. ENOSPC.
  virtual Result<SlotRoom> slot_room(uint64_t slots) = 0;
  // Current size; blocks past a smaller one leave the current view. The caller has zeroed the tail
  // of the last block. Committed with the inode's next commit, but what is longer than it was no
  // earlier than what a write before made longer.
  virtual Result<void> set_size(InodeId id, uint64_t size) = 0;
  // Removes whole blocks from the current view (punch).
  virtual Result<void> remove_range(InodeId id, FileBlock first, uint64_t count) = 0;
  // Unwritten extents need format version kUnwrittenVersion. The next two calls are durable when
  // they return, as changes of names are.
  //
  // Fills holes with these pieces, of blocks reserved from the allocator; after an error those are
  // free again. `room`: a slot for each of unwritten_extents(), and one more.
  virtual Result<void> preallocate(InodeId id, std::span<const WriteResult::NewPiece> pieces,
                                   SlotRoom& room) = 0;
  // Turns written blocks into unwritten ones: they read as zeroes, and the file keeps them. EBUSY
  // while a change of the file is not committed. `room`: two slots for each of unwritten_extents(),
  // and one more.
  virtual Result<void> unwrite(InodeId id, FileBlock first, uint64_t count, SlotRoom& room) = 0;
  // Makes what was finished up to `epoch` committed, and the size and times with it. One fence for
  // an ordinary file; several ring-sized records for a badly fragmented one.
  virtual Result<void> commit_inode(InodeId id, uint64_t epoch) = 0;
  // The same ahead of the flush of data written after epoch `flushed`, by one conditional record
  // (conditional_record.h). Returns false, and has done nothing, if the inode cannot be committed
  // ahead. Requires: a journal whose sink keeps conditions.
  virtual Result<bool> commit_ahead(InodeId id, uint64_t epoch, uint64_t flushed) = 0;
  virtual bool dirty(InodeId id) = 0;  // current differs from committed
  // Not only in its times: what was written cannot be read back without a commit.
  virtual bool needs_commit(InodeId id) = 0;
  // Stored checksums of blocks, 0 = not known.
  virtual void checksums(BlockNo first, std::span<uint32_t> out) = 0;
  // A block read and found intact whose checksum was not known: remember it (lazily flushed).
  virtual void learn_checksum(BlockNo block, uint32_t crc) = 0;
  // A block was read whose checksum is this one and not the stored one: true if a copy of META has
  // it, from which the other is mended.
  virtual bool mend_checksum(BlockNo block, uint32_t crc) = 0;

  // Takes what `larger`, of plan_growth(), adds; the region is that large already. One caller at a
  // time, beside everything else. `announce` is called with the superblock that META has then,
  // durably, before anything of what is new is used; if it fails, nothing of it will be.
  // What a crash leaves: the old size or the new one, and all files.
  using Announce = std::function<Result<void>(const Superblock&)>;
  virtual Result<void> grow(const Superblock& larger, const Announce& announce) = 0;

  // META that was kept twice goes on with one copy: its superblock counts one attachment more and
  // has this token from now on. Stored and fenced; the caller syncs. Beside everything else.
  virtual Result<void> attach_again(uint32_t mirror_token) = 0;
  // META has this format version, if it is higher. Stored and fenced; the caller syncs.
  virtual Result<void> raise_version(uint32_t version) = 0;
  // META is not to be believed by the next mount: its superblock names a boot that never was.
  // Stored and fenced; the caller syncs.
  virtual Result<void> distrust() = 0;
  virtual Superblock superblock() = 0;  // as META has it

  // About what inodes, extents and directory indexes take in memory.
  virtual uint64_t cached_bytes() const = 0;

  virtual BlockAllocator& blocks() = 0;
  virtual Journal& journal() = 0;
  virtual const Geometry& geometry() const = 0;

  // ---- vStream table (placement's; it keeps the meaning)
  virtual std::vector<VStreamSlot> load_vstreams() = 0;  // index = slot
  virtual Result<void> store_vstream(uint32_t slot, const VStreamSlot& value) = 0;
  virtual uint32_t vstream_capacity() const = 0;

  // Everything committed is home and the superblock says clean, and where the metadata log ends
  // (LogEnd, packed; 0: there is none, or the next mount has to begin it). Nothing may follow but
  // reads.
  virtual Result<void> close_clean(uint64_t log_end) = 0;
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
