// Reads, writes and resizes files, each under the inode's range lock.
//
// Overwrites go in place, and so do writes into preallocated blocks. If an overwrite would have to
// wait for a flush and another block can be spared, the data goes to the other block instead.
// A read ends at the file's end, returns zeroes for holes and unwritten blocks, and fails with EIO
// at a block with a wrong checksum.
// Thread safety: any thread may call any method. In a Trying (base/waiting.h) read(), write() and
// truncate() return would_wait() instead of waiting for the device; the other methods may wait.
// Requires: the caller holds no range of the file. It has checked that the mount is writable and,
// for the last three methods, that the range ends at kMaxFileBytes or before. Errors of all: ESTALE
// (the inode is gone), EIO. After a crash: see write_job.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/core.h"

namespace streamfs::data {

class DataPath {
 public:
  explicit DataPath(Core& core) : core_(core) {}

  Result<size_t> read(InodeId id, uint64_t offset, Bytes out);
  // Errors: EFBIG; ENOSPC. After ENOSPC the blocks that the range already has may hold the new
  // bytes.
  Result<void> write(InodeId id, uint64_t offset, ConstBytes in, meta::WriteTimes times);
  Result<void> truncate(InodeId id, uint64_t size);  // Errors: EFBIG.
  // Allocates every block of [offset, offset + length): a write there never gets ENOSPC until the
  // range is punched or cut off. Data stays; the rest reads as zeroes. Errors: ENOSPC.
  Result<void> preallocate(InodeId id, uint64_t offset, uint64_t length, bool keep_size);
  // As preallocate(), and the whole range reads as zeroes afterwards.
  Result<void> zero(InodeId id, uint64_t offset, uint64_t length, bool keep_size);
  // Makes [offset, offset + length) read as zeroes; whole blocks become holes.
  Result<void> punch(InodeId id, uint64_t offset, uint64_t length);

 private:
  // The methods that take an InodeState require its range lock, held exclusively over the blocks
  // that they change.
  using NewPieces = std::vector<meta::WriteResult::NewPiece>;
  Result<void> write_all(InodeId id, uint64_t offset, ConstBytes in, meta::WriteTimes times);
  std::optional<Result<void>> try_write(InodeId id, uint64_t offset, ConstBytes in,
                                        meta::WriteTimes times, bool& lacks_slots);
  void write_where_there_are_blocks(InodeId id, uint64_t offset, ConstBytes in,
                                    meta::WriteTimes times);
  Result<void> write_whole_extents(InodeId id, uint64_t first, uint64_t last);
  Result<void> fill_holes(const InodeState& state, const meta::Attributes& now, uint64_t offset,
                          uint64_t length);
  Result<void> reserve_or_reclaim(VStreamId vstream, const std::vector<meta::Piece>& pieces,
                                  NewPieces& added);
  Result<void> reserve(VStreamId vstream, const std::vector<meta::Piece>& pieces, NewPieces& added);
  void cancel(NewPieces& added);
  Result<void> unwrite(InodeState& state, InodeId id, uint64_t first, uint64_t end);
  Result<void> commit_all(InodeState& state, InodeId id);
  // Reads the pieces into `image` and verifies them. `learn`: see Checksums::verify().
  Result<void> load(InodeId id, const std::vector<meta::Piece>& pieces, Bytes image, bool learn);
  Result<void> resize_locked(InodeState& state, const meta::Attributes& now, uint64_t size);
  // Does nothing in a hole or an unwritten block. Requires: [from, to) lies in one block.
  Result<void> zero_in_block(InodeState& state, const meta::Attributes& now, uint64_t from,
                             uint64_t to, uint64_t end_offset,
                             meta::WriteTimes times = meta::WriteTimes::kNow);
  Result<void> punch_locked(InodeState& state, const meta::Attributes& now, uint64_t from,
                            uint64_t to);
  Core& core_;
};

}  // namespace streamfs::data
