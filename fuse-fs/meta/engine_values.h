// The values that the engine's operations take and return.
// Thread safety: plain values. A string_view borrows from the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/types.h"

namespace streamfs::meta {

struct Attributes {
  InodeId id;
  uint32_t generation = 0;
  uint32_t mode = 0;  // type and permissions, as st_mode
  uint32_t nlink = 0, uid = 0, gid = 0;
  uint64_t size = 0;
  uint64_t blocks = 0;  // of 4 KiB, in the current view
  Timestamp atime, mtime, ctime, btime;
  uint64_t rdev = 0;
  VStreamId vstream;
  uint8_t vstream_generation = 0;  // placement's: which use of that number is meant
  bool vstream_hinted = false;     // set by a hint; then the generation is 0
};

struct Caller {
  uint32_t uid = 0, gid = 0;
  uint32_t umask = 0;  // applied unless the directory has a default ACL
};

// A flag of set_xattr(): an access ACL, which sets the mode, clears the setgid bit as well.
inline constexpr int kXattrKillSgid = 1 << 16;

struct CreateRequest {
  uint32_t mode = 0;  // with the file type, as asked for
  Caller caller;
  uint64_t rdev = 0;
  std::string_view symlink_target;
  VStreamId vstream;  // chosen by placement
  bool vstream_hinted = false;
  uint8_t vstream_generation = 0;
};

// The fields that set_attributes() changes. Absent fields keep their values.
struct AttributeChange {
  std::optional<uint32_t> mode;  // permission bits only
  std::optional<uint32_t> uid, gid;
  std::optional<Timestamp> atime, mtime, ctime;
  std::optional<VStreamId> vstream;  // 0 clears the hint
  bool clear_suid = false;           // setuid, and setgid where the group may execute
  bool clear_sgid = false;           // setgid in any case, also where it marks mandatory locking
  // Changes mtime and ctime of a regular file and ignores all other fields. The change is current
  // only until the inode's next commit. The kernel sends such changes after each write, rename and
  // unlink.
  bool lazily = false;
};

struct DirectoryEntry {
  std::string_view name;
  InodeId id;
  uint32_t type;         // S_IFMT bits
  uint64_t next_cookie;  // the cookie of the entry after this one
};

struct RenameResult {
  InodeId moved;
  std::optional<InodeId> replaced;  // the inode that lost the new name; maybe its last name
};

struct Space {
  uint64_t data_blocks = 0, free_blocks = 0;  // free_blocks: allocatable now or after a trim
  uint64_t heap_units = 0, free_units = 0;
  uint64_t inodes_possible = 0, inodes_free = 0;  // their difference: in use
};

// `programmed`: the words of META that changes of metadata programmed, the journal's included.
// `of_blocks`: the words of the 4 KiB blocks that each change touched at home, which a block file
// system would have written. Neither counts checksums of data. A change's blocks are counted when
// the journal is checkpointed.
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

// How mtime and ctime follow a write. A kernel with a writeback cache keeps both times and sends
// them itself, sometimes ahead of the last write that they belong to.
enum class WriteTimes : uint8_t { kNow, kSetByKernel };

// A finished write, to be added to an inode's current view. New pieces name blocks reserved from
// the allocator; overwritten blocks need only their checksums.
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

}  // namespace streamfs::meta
