// A region that remembers every store, flush and fence, and from them makes every legal crash
// image: what persistent memory may hold when the power goes at any point.
//
// Two store models: kLinePrefix, x86's (stores to a line reach the media in order, so a line holds
// a prefix of them), and kAnyWord (any 8-byte word of a line may be old or new). What was flushed
// and then fenced is always there; anything else may be, whether flushed or not.
//
// Thread safety: stores, flushes and fences from any thread; crash_images() only when they rest.
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
  // Starts from these words, as durable.
  explicit RecordingRegion(const std::vector<uint64_t>& words);
  MetaClass meta_class() const override { return class_; }

  // Forgets the past: what the region holds now is durable.
  void start_recording();
  // An operation ended here: whatever it promised must survive any later cut.
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
  std::vector<uint64_t>& words;              // left as they are: a ScratchRegion does
  size_t marks;                              // operations that had ended before the cut
  std::function<std::string()> description;  // where the cut is and what was lost
};

// A region over words of somebody else's, which its end puts back, or put_back() sooner: what is
// done with one crash image costs what it changes and not a copy of it. Lines are kept as they were
// when first stored to. Words programmed are not counted. Thread safety: none.
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
  std::vector<uint64_t> kept_;  // a bit a line: it is in before_
};

enum class StoreModel : uint8_t { kLinePrefix, kAnyWord };

struct ExploreOptions {
  std::vector<StoreModel> models{StoreModel::kLinePrefix, StoreModel::kAnyWord};
  size_t exhaustive_up_to = 256;  // combinations at one cut; more are sampled
  size_t samples = 32;            // random ones where not exhaustive
  uint64_t seed = 1;
  // The region holds copies of this many bytes: where not exhaustive, each also keeps all or
  // nothing.
  uint64_t copy_bytes = 0;
  size_t from_mark = 0;  // cuts before this mark are passed over
  std::unordered_set<uint64_t>* seen =
      nullptr;  // images not to be visited again; none: this call's
};

// Visits every distinct image: at each fence and each mark, all combinations of what may have
// reached the media (or none, all, each alone, all but each, and random ones). Returns their
// number. Stops early when visit returns false.
uint64_t each_crash_image(const std::vector<uint64_t>& initial,
                          const std::vector<RecordingRegion::Event>& events,
                          const ExploreOptions& options,
                          const std::function<bool(const CrashImage&)>& visit);

}  // namespace streamfs::pmem
