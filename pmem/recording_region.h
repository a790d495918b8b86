// A region that records every store, flush and fence, and each_crash_image(), which makes from the
// record the legal crash images: the contents that persistent memory may have after a power cut.
//
// There are two store models. kLinePrefix is x86's: stores to a line reach the media in order, so a
// line holds a prefix of them. kAnyWord: each 8-byte word of a line may be old or new. A store that
// was flushed and then fenced is in every image; any other store may be, flushed or not.
//
// Thread safety: stores, flushes, fences and mark() from any thread. start_recording(), events(),
// initial() and words() require that none of these runs.
// After a crash: memory only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "pmem/region.h"

namespace streamfs::pmem {

class RecordingRegion final : public Region {
 public:
  RecordingRegion(uint64_t size, MetaClass meta_class);
  // Starts with these words, which are durable.
  explicit RecordingRegion(const std::vector<uint64_t>& words);
  MetaClass meta_class() const override { return class_; }

  // Clears the record; the current content counts as durable, and becomes initial().
  void start_recording();
  // Records the end of an operation: its promises must survive any later cut.
  void mark();

  struct Event {
    enum class Kind : uint8_t { kStore, kFlush, kFence, kMark } kind;
    uint64_t offset = 0;
    uint64_t value = 0;
  };
  const std::vector<Event>& events() const SFS_NO_TSA { return events_; }
  const std::vector<uint64_t>& initial() const SFS_NO_TSA { return initial_; }
  std::vector<uint64_t> words() const { return current_; }

 protected:
  void on_store(uint64_t offset, uint64_t value) override;
  void write_back_line(uint64_t offset) override;
  void drain() override;
  Result<void> make_durable() override { return {}; }

 private:
  void push(Event event);
  std::vector<uint64_t> current_;
  MetaClass class_;
  Mutex mutex_;  // leaf
  std::vector<uint64_t> initial_ SFS_GUARDED_BY(mutex_);
  std::vector<Event> events_ SFS_GUARDED_BY(mutex_);
};

struct CrashImage {
  std::vector<uint64_t>& words;              // visit() leaves them unchanged: see ScratchRegion
  size_t marks;                              // operations that had ended before the cut
  std::function<std::string()> description;  // position of the cut and the lost offsets
};

// A region over the caller's words. put_back() or the destructor restores them, so that a recovery
// run on a crash image costs the lines that it changes and not a copy of the image. A line is saved
// at the first store to it.
// Thread safety: none.
class ScratchRegion final : public Region {
 public:
  explicit ScratchRegion(std::span<uint64_t> words);  // whole lines
  ~ScratchRegion() override { put_back(); }
  MetaClass meta_class() const override { return MetaClass::kPersistent; }
  void put_back();

 protected:
  uint64_t put(uint64_t offset, std::span<const uint64_t> words) override;
  void on_store(uint64_t offset, uint64_t) override { keep_line(offset / kLineSize); }
  void write_back_line(uint64_t) override {}
  void drain() override {}
  Result<void> make_durable() override { return {}; }

 private:
  static constexpr size_t kLineWords = kLineSize / kWordSize;
  struct Line {
    uint64_t number;
    std::array<uint64_t, kLineWords> words;
  };
  void keep_line(uint64_t number);

  std::span<uint64_t> words_;
  std::vector<Line> before_;
  std::vector<uint64_t> kept_;  // a bit a line: set if it is in before_
};

enum class StoreModel : uint8_t { kLinePrefix, kAnyWord };

struct ExploreOptions {
  std::vector<StoreModel> models{StoreModel::kLinePrefix, StoreModel::kAnyWord};
  size_t exhaustive_up_to = 256;  // combinations at one cut; above it they are sampled
  size_t samples = 32;            // random combinations at a sampled cut
  uint64_t seed = 1;
  // Unless 0, the region holds two copies, and the first has this many bytes. A sampled cut then
  // also visits images in which one copy has all of its pending stores or none.
  uint64_t copy_bytes = 0;
  size_t from_mark = 0;  // skips cuts before this mark
  std::unordered_set<uint64_t>* seen =
      nullptr;  // images that are not visited again; null: those of this call
};

// Visits the crash images at each fence, each mark and the end of `events`. A cut with at most
// exhaustive_up_to combinations of pending stores visits all of them. A larger one visits none,
// all, each alone, all but each, and random ones. Equal words after equally many marks are visited
// once. Returns the number of images. Stops when visit() returns false.
uint64_t each_crash_image(const std::vector<uint64_t>& initial,
                          const std::vector<RecordingRegion::Event>& events,
                          const ExploreOptions& options,
                          const std::function<bool(const CrashImage&)>& visit);

}  // namespace streamfs::pmem
