// Shadow devices count the copies that each of several placements (candidates) would have cost.
// Every candidate has a device of its own, small and without data; all see the same writes.
//
// The devices follow a sample of chunks (chunk_sample.h), and are smaller by the same factor
// (smaller_device.h). Victims and copies follow the whole device's policies (Settings).
//
// A device that is not full copies nothing under any placement, and so tells nothing. With
// Settings::begins below 1, the devices begin smaller and grow with the peak of live pages. They
// are full from the start, and show the cost that each placement will have on the full device.
// Thread safety: none. Memory: some 50 bytes for each page followed and candidate.
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
    double spare = 0.07;               // effective spare: physical pages ÷ live_pages − 1
    uint32_t block_pages = 256;        // of the whole device
    uint64_t sampled_pages = 1 << 17;  // about how many of the live pages are followed
    ssd::GcMode gc_mode = ssd::GcMode::kSameStream;
    ssd::VictimKind victim = ssd::VictimKind::kGreedy;
    double begins = 1;  // the devices begin for this share of live_pages, and grow
  };
  explicit Shadow(const Settings& settings);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // Replays the records on all devices. `tags`: a class for each page written, all pages of the
  // first candidate, then all of the next. Unbelievable records have no tags and are left out.
  // Throws std::invalid_argument for a class that is too high, with no change, and for too few
  // tags, after the records before.
  void feed(std::span<const wire::TelemetryRecord> records, std::span<const uint8_t> tags);

  // Writes `pages` pages from `first` on once with class `cls` on all devices, as the content at
  // the start; written() does not count them. Throws std::invalid_argument if the class is too
  // high.
  void fill(uint64_t pages, uint8_t cls, uint64_t first = 0);
  // Makes every device a copy of candidate `serving`'s, so that each then shows the cost of
  // changing over to its placement. copied() of each goes on from its own count. Throws
  // std::invalid_argument if there is no such candidate.
  void fork(uint32_t serving);
  // Closes the candidate's open block of a class that it will not write for long. Throws
  // std::invalid_argument if there is no such candidate or class.
  void release(uint32_t candidate, uint8_t cls);

  uint32_t classes() const { return classes_; }
  uint64_t written() const { return written_; }         // followed pages that feed() wrote
  std::vector<uint64_t> copied() const;                 // pages, by candidate
  uint64_t one_in() const { return sample_.stride(); }  // one in so many chunks is followed
  uint64_t live_pages() const { return live_; }  // followed pages that the devices are sized for
  // Returns the page writes that failed, summed over the devices: a device was full, or more pages
  // were met than it can number. Unless it is 0, live_pages was too low and copied() is useless.
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
  std::vector<Numbers::Numbered> known_;  // scratch for feed()
  uint32_t pages_max_ = 0;                // numbers are below this
  uint64_t written_ = 0, refused_ = 0;
};

}  // namespace streamfs::classifier
