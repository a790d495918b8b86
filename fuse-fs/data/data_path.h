// Reads, writes and changes of size of one file, each under the inode's range lock.
//
// Overwrites go in place; only what is new is allocated. A read never shows what lies past the
// file's end or in a hole, and never a block whose checksum does not fit.
// Thread safety: any thread; all may wait for the device. What a crash leaves: write_job.h.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/core.h"

namespace streamfs::data {

class DataPath {
 public:
  explicit DataPath(Core& core) : core_(core) {}

  Result<size_t> read(InodeId id, uint64_t offset, Bytes out);
  Result<void> write(InodeId id, uint64_t offset, ConstBytes in, meta::WriteTimes times);
  Result<void> truncate(InodeId id, uint64_t size);
  // Space is checked for, not set aside: a later write may still get ENOSPC.
  Result<void> preallocate(InodeId id, uint64_t offset, uint64_t length, bool keep_size);
  // [offset, offset + length) reads as zeroes afterwards; whole blocks become holes.
  Result<void> zero(InodeId id, uint64_t offset, uint64_t length, bool keep_size);
  // Collapse and insertion of whole blocks (EINVAL), durable when they return. What of
  // the file waits for a flush is flushed and committed first.
  enum class Shift : uint8_t { kCollapse, kInsert };
  Result<void> shift(InodeId id, Shift kind, uint64_t offset, uint64_t length);

 private:
  Result<void> load(InodeId id, const std::vector<meta::Piece>& pieces, Bytes image, bool learn);
  Result<void> resize_locked(InodeState& state, const meta::Attributes& now, uint64_t size);
  // [from, to) lies in one block.
  Result<void> zero_in_block(InodeState& state, const meta::Attributes& now, uint64_t from,
                             uint64_t to, uint64_t end_offset,
                             meta::WriteTimes times = meta::WriteTimes::kNow);
  Result<void> punch_locked(InodeState& state, const meta::Attributes& now, uint64_t from,
                            uint64_t to);
  Core& core_;
};

}  // namespace streamfs::data
