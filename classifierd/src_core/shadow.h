// Shadow devices: what would each of several placements have cost lately? Every candidate has a
// device of its own, small and without data; all see the same writes.
//
// A sample of chunks is followed (chunk_sample.h), and the devices are that much smaller
// (smaller_device.h). Garbage collection is greedy; copies go where the whole device puts them.
//
// A device that is not full yet copies nothing, whatever places its pages, and shows nothing. So a
// shadow device may begin smaller and grow with what has lived at once so far: it is full from the
// start, and says what each placement will cost once the whole device is.
// Thread safety: none. Memory: some 50 bytes a page followed and candidate.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/wire/telemetry.h"
#include "classifierd/src_core/chunk_sample.h"
#include "classifierd/src_core/smaller_device.h"
#include "ssd/geometry.h"
#include "ssd/page_numbers.h"

namespace streamfs::classifier {

class ShadowDevice;

class Shadow {
 public:
  struct Settings {
    uint64_t live_pages = 0;  // at most so many are live at once, on the whole device
    uint32_t candidates = 1;
    uint32_t classes = 1;              // tags are below this
    double spare = 0.07;               // all there is: physical ÷ live_pages − 1
    uint32_t block_pages = 256;        // of the whole device
    uint64_t sampled_pages = 1 << 17;  // about how many of the live pages are followed
    ssd::GcMode gc_mode = ssd::GcMode::kSameStream;
    ssd::VictimKind victim = ssd::VictimKind::kGreedy;
    double begins = 1;  // made for this share of live_pages, and growing
  };
  explicit Shadow(const Settings& settings);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // `tags` holds a class a page written, one candidate's after the other's: pages · candidates.
  // Throws std::invalid_argument if they are too few or too high.
  void feed(std::span<const wire::TelemetryRecord> records, std::span<const uint8_t> tags);

  // The device's content at the start: `pages` from `first` on, written once with class `cls`.
  // Throws std::invalid_argument if that is too high.
  void fill(uint64_t pages, uint8_t cls, uint64_t first = 0);
  // All candidates' devices become what the one that serves has: each shows what going over to it
  // would cost from here. Throws std::invalid_argument for no candidate.
  void fork(uint32_t serving);
  // The candidate has no use for the class for long: its open block is closed. Throws
  // std::invalid_argument for what is no candidate or class.
  void release(uint32_t candidate, uint8_t cls);

  uint32_t classes() const { return classes_; }
  uint64_t written() const { return written_; }         // pages followed, ever
  std::vector<uint64_t> copied() const;                 // of each candidate, ever
  uint64_t one_in() const { return sample_.stride(); }  // chunks
  uint64_t live_pages() const { return live_; }  // followed: the devices are made for so many
  // Writes that found a device full, so that nothing it says counts: live_pages was too low.
  uint64_t refused() const { return refused_; }

 private:
  using Numbers = ssd::NumbersByRun<ChunkSample::kChunkPages>;
  template <typename Tag>
  void write(uint64_t number, const Tag& tag);
  void fit();
  void fit(uint64_t live);

  const uint32_t classes_;
  const ChunkSample sample_;
  WholeDevice whole_;
  uint64_t live_max_ = 0, live_ = 0;
  uint32_t blocks_ = 0;  // of a device made for live_max_
  Numbers numbers_;
  std::vector<std::unique_ptr<ShadowDevice>> devices_;
  std::vector<Numbers::Numbered> known_;
  uint32_t pages_max_ = 0;  // numbers are below this
  uint64_t written_ = 0, refused_ = 0;
};

}  // namespace streamfs::classifier
