// A filesystem in ordinary memory for the tests of meta: formatted, opened, closed, "crashed".
// Thread safety: one thread, unless a test says otherwise.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "pmem/region.h"

namespace streamfs::meta {

class ManualClock final : public Clock {
 public:
  Timestamp now() override { return {seconds_, nanoseconds_}; }
  uint64_t monotonic_ms() override { return static_cast<uint64_t>(seconds_) * 1000; }
  void advance() {
    seconds_ += 1;
    nanoseconds_ += 7;
  }

 private:
  int64_t seconds_ = 1'700'000'000;
  uint32_t nanoseconds_ = 1;
};

inline CreateRequest node(uint32_t mode) {
  CreateRequest request;
  request.mode = mode;
  return request;
}

inline int error_of(const auto& result) {
  return result.ok() ? 0 : result.error().code;
}

struct Size {
  uint64_t meta_bytes = 16 << 20;
  uint64_t data_blocks = 1 << 16;  // 256 MiB
  bool mirrored = false;
  uint64_t cache_bytes = Engine::Options{}.cache_bytes;
};

class Filesystem {
 public:
  explicit Filesystem(Size size = {});
  ~Filesystem();

  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  pmem::Region& region() { return *region_; }
  ManualClock& clock() { return clock_; }

  void open();
  void close();                        // orderly, and checks the media
  void reopen();                       // close() and open
  void crash();                        // drops the engine as it is, and opens what META holds
  void abandon() { engine_.reset(); }  // damaged: no close, no check
  // Fails the test with what check() has to say against the closed media.
  void expect_sound();

  // Writes the count into the media and opens it again: a lie that check() would find.
  void set_link_count(InodeId id, uint32_t count);

  // ---- Shorthands; all of them fail the test on an error. References are kept, as a kernel would.
  InodeId root() { return engine_->root(); }
  InodeId file(std::string_view name, InodeId parent = InodeId{0});
  InodeId directory(std::string_view name, InodeId parent = InodeId{0});
  int unlink(std::string_view name, InodeId parent = InodeId{0});  // 0 or an errno
  int lookup_error(std::string_view name, InodeId parent = InodeId{0});
  bool exists(std::string_view name, InodeId parent = InodeId{0}) {
    return lookup_error(name, parent) == 0;
  }
  std::vector<std::string> names(InodeId directory);  // without "." and ".."
  Attributes attributes(InodeId id);
  bool is_allocated(BlockNo block);  // by the block bitmap in META
  // Reserves and finishes a write of whole blocks; checksums are block + 1.
  void write(InodeId id, uint64_t first, uint64_t count, uint64_t epoch = 1);
  void commit(InodeId id, uint64_t epoch = 1);
  void preallocate(InodeId id, uint64_t first, uint64_t count);  // its holes
  void forget_and_free(InodeId id, uint64_t count = 1);

 private:
  InodeId parent_or_root(InodeId parent) { return parent.value == 0 ? root() : parent; }

  const uint64_t cache_bytes_;
  std::unique_ptr<pmem::Region> region_;
  ManualClock clock_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace streamfs::meta
