// An open image file, whose header has been checked. Access decides which parts are mapped and
// whether its lock is held.
//
// Thread safety: none, except for SharedState (layout.h); the owner locks.
// After a crash: see layout.h. create() names the image once it is whole, so that a failure or a
// kill leaves no partial one (output_file.h).
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/layout.h"

namespace streamfs::ssd {

class Image {
 public:
  enum class Access : uint8_t {
    kHold,      // everything, read and write; exclusive lock
    kHoldRead,  // everything, read only; exclusive lock
    kObserve,   // shared() only, read only; no lock: for an image in use
    kControl,   // as kObserve, but store_baseline() may write
  };

  // Creates an empty device. Errors: EEXIST without `replace`, EBUSY if the image to be replaced is
  // in use, EINVAL for an impossible geometry or a path that is no regular file, those of the host.
  static Result<void> create(const std::string& path, const Geometry& geometry, bool replace);

  // Errors: EINVAL for a foreign, damaged, truncated or other-version image, EBUSY if another
  // process still holds it after `wait_seconds`, those of open(2).
  static Result<std::unique_ptr<Image>> open(const std::string& path, Access access,
                                             double wait_seconds);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  int fd() const { return fd_; }
  const Geometry& geometry() const { return geometry_; }
  const std::string& uuid() const { return uuid_; }
  // Write and read the flash; return errno values, 0 for none. Writes are in whole map units, reads
  // in pages of 4 KiB. An eMMC's log of contexts lies at addresses behind the blocks.
  int write_flash(Ppn at, ConstBytes data);
  int read_flash_pages(uint64_t page, Bytes data) const;
  int read_flash(Ppn at, Bytes data) const {
    return read_flash_pages(uint64_t{at} * geometry_.map_unit_pages, data);
  }
  SharedState& shared() { return *reinterpret_cast<SharedState*>(map_ + kSharedStateOffset); }
  // The tables of layout.h: the state of each block; the sequence at which each map unit of the
  // host was trimmed last; the spare area. Requires: kHold or kHoldRead.
  std::span<BlockRecord> blocks() {
    return {reinterpret_cast<BlockRecord*>(map_ + offsets_.block), geometry_.blocks};
  }
  std::span<uint64_t> trims() {
    return {reinterpret_cast<uint64_t*>(map_ + offsets_.trim), geometry_.in_map_units().user_pages};
  }
  std::span<SpareEntry> spare() {
    return {reinterpret_cast<SpareEntry*>(map_ + offsets_.spare),
            geometry_.in_map_units().physical_pages()};
  }

 private:
  Image() = default;
  Result<void> read_header(const std::string& path);
  Result<void> map(Access access);

  int fd_ = -1;
  std::byte* map_ = nullptr;
  uint64_t map_bytes_ = 0;
  Geometry geometry_;
  ImageOffsets offsets_{};
  std::string uuid_;
};

// Stores a block's state and erase count at once.
void publish(BlockRecord& record, uint32_t state, uint32_t erases);

// Returns a consistent copy of the holder's counts, in any process. If the holder died during an
// update, returns after about 0.1 s a copy that is off by one request at most.
SharedState snapshot(const SharedState& shared);
// Stores the current counts as the baseline and sets the peak of live pages to the current number,
// in any process.
void store_baseline(SharedState& shared);

// Brackets the holder's changes of SharedState.
class SharedUpdate {
 public:
  explicit SharedUpdate(SharedState& shared);
  ~SharedUpdate();
  SharedUpdate(const SharedUpdate&) = delete;
  SharedUpdate& operator=(const SharedUpdate&) = delete;

 private:
  SharedState& shared_;
};

}  // namespace streamfs::ssd
