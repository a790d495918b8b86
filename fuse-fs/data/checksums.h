// Checksums of data blocks: CRC32C, 0 = not known. A block whose checksum is not known is accepted
// as read (after a cut it may be old, new or a mix of sectors, all the file's own) and remembered.
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
  static void of_each(ConstBytes blocks, std::span<uint32_t> crcs);  // the same
  static uint32_t copy(Bytes to, ConstBytes from);

  // `bytes` is what the device gave for the blocks from `first` on. EIO names the first bad one.
  // learn: no write of these blocks awaits a flush, so what was read is what will stay.
  Result<void> verify(InodeId id, BlockNo first, ConstBytes bytes, bool learn);
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

 private:
  meta::Engine& engine_;
  const bool enabled_, verify_;
  std::atomic<uint64_t> errors_{0};
};

}  // namespace streamfs::data
