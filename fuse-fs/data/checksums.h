// Checksums of the blocks of DATA: CRC32C, 0 = not known. A block whose checksum is not known is
// accepted as read, and verify() may store its checksum. Such a block may hold old sectors, new
// sectors or both after a crash, but never those of another file.
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"

namespace streamfs::data {

class Checksums {
 public:
  Checksums(meta::Engine& engine, bool verify)
      : engine_(engine), enabled_(engine.geometry().checksums()), verify_(verify && enabled_) {}

  bool enabled() const { return enabled_; }
  static uint32_t of(ConstBytes block);                              // never 0
  static void of_each(ConstBytes blocks, std::span<uint32_t> crcs);  // of each block
  // Copies a block and returns its checksum.
  static uint32_t copy(Bytes to, ConstBytes from);

  // Checks `bytes`, which the device returned for its blocks from `first` on, blocks of file `id`.
  // If `learn`, stores the checksums that are not known. Does nothing if checksums are off or not
  // verified. If another copy of META has the checksum that a block has, the block is accepted and
  // the first copy of META is mended. Requires, if `learn`: no write of these blocks is unflushed.
  // Errors: EIO names the first bad block; the blocks after it are not checked.
  Result<void> verify(InodeId id, BlockNo first, ConstBytes bytes, bool learn);
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

 private:
  meta::Engine& engine_;
  const bool enabled_, verify_;
  std::atomic<uint64_t> errors_{0};
};

}  // namespace streamfs::data
