// Checksums of data blocks: CRC32C, 0 = not known. A block whose checksum is not known is accepted
// as read, and verify() may store its checksum: after a crash the block may hold old sectors, new
// sectors or a mix, all of them the file's own.
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
  static uint32_t copy(Bytes to, ConstBytes from);                   // copies a block

  // Checks `bytes`, which the device returned for the blocks from `first` on. `learn`: store
  // checksums that are not known; requires that no write of these blocks is unflushed. Errors: EIO
  // names the first bad block.
  Result<void> verify(InodeId id, BlockNo first, ConstBytes bytes, bool learn);
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

 private:
  meta::Engine& engine_;
  const bool enabled_, verify_;
  std::atomic<uint64_t> errors_{0};
};

}  // namespace streamfs::data
