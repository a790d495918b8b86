// smartphone: the requests of a phone's F2FS to its storage in two months. Yong (2021, table I)
// gives only these facts of such a trace: 26.19 M writes of 390.74 GiB, 23.45 M reads of 794.43
// GiB, 5.56 M discards of 692.85 GiB on 256 GiB, in seven streams. vStreams: 1 hot, 2 warm, 3 cold
// node; 4 hot, 5 warm, 6 cold data; 7 the file system's metadata. pStreams are those of table II.
//
// The rest follows F2FS as it is known (Lee, FAST'15; its mount's defaults). It has a log of
// segments of 2 MiB for each temperature, and rewrites metadata in place in an area of its own. A
// replaced page dies where it lies; runs of 16 dead pages and whole segments are discarded. If free
// segments are few, the emptiest segment is cleaned, and its live pages go to the log of cold data.
// Files without a lifetime stay until the file system is 85 % full; then some are deleted.
//
// Each request belongs to one stream and has a lifetime drawn for it: exponential, of a short and a
// long kind (a database's journal, and its table). With drift, every tenth of a capacity all means
// are drawn anew around their centres, and so are the shares of the streams. Memory: 4 bytes for
// each page, 24 for each request that lives.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

struct PhoneStream {
  double share;                  // of the bytes written
  double request_pages;          // mean
  double short_share;            // of the requests
  double short_life, long_life;  // means, in capacities; 0: until there is no room
  uint16_t manual;               // the pStream of table II
};

// Node blocks are a quarter of the writes of applications that fsync. Small requests make the mean
// request 15.6 KiB, as in table I.
constexpr std::array<PhoneStream, 7> kPhone = {{{0.02, 1.5, 1, 0.003, 0, 0},
                                                {0.22, 2, 0.85, 0.004, 0.6, 1},
                                                {0.01, 1, 1, 0.2, 0, 2},
                                                {0.03, 1.5, 1, 0.006, 0, 0},
                                                {0.47, 5, 0.70, 0.010, 0.5, 1},
                                                {0.20, 64, 0.40, 0.15, 0, 2},
                                                {0.05, 4, 1, 0, 0, 1}}};
constexpr size_t kColdData = 5, kMetadata = 6, kLogs = 6;
constexpr uint32_t kDiscardPages = 16, kReadPages = 9;
constexpr double kReadsAWrite = 794.43 / 390.74;
constexpr double kOldFiles = 0.80, kFull = 0.85;  // of the pages
constexpr double kPhase = 0.1;                    // of the pages, in writes
constexpr uint32_t kFileRunPages = 512;           // photographs, programs: whole segments
constexpr size_t kFreeSegments = 6;

class Smartphone final : public Generator {
 public:
  Smartphone(const GeneratorOptions& options, bool drift)
      : Generator(options),
        drift_(drift),
        segment_pages_(std::clamp(pages_ / 512, 16u, 512u)),
        metadata_pages_(round_up(std::max(pages_ / 1024, 1u), segment_pages_)) {
    restart();
  }

  // The tag of pages that are there at the start: old files, and deleted pages that the device does
  // not know of.
  Tag resident_tag(ssd::Lpn page) const override {
    return page < metadata_pages_ ? tag_of(kMetadata) : tag_of(kColdData);
  }

 private:
  static constexpr uint32_t kDead = UINT32_MAX, kDiscarded = UINT32_MAX - 1;
  static constexpr uint32_t kNoSegment = UINT32_MAX;
  static constexpr uint64_t kUntilNoRoom = UINT64_MAX;

  struct Extent {  // in one segment
    ssd::Lpn first;
    uint32_t pages;
    uint64_t dies;
  };
  struct Segment {
    uint32_t live = 0, written = 0;
    bool open = false;
  };
  using Death = std::pair<uint64_t, uint32_t>;  // when, which extent

  static uint32_t round_up(uint32_t value, uint32_t unit) {
    return (value + unit - 1) / unit * unit;
  }
  static Tag tag_of(size_t stream) {
    return {static_cast<uint16_t>(stream + 1), kPhone[stream].manual};
  }

  void restart() override {
    const uint32_t count = pages_ / segment_pages_;
    segments_.assign(count, {});
    extent_of_.assign(pages_, kDiscarded);
    extents_.clear();
    unused_extents_.clear();
    old_files_.clear();
    deaths_ = {};
    free_.clear();
    open_.fill(kNoSegment);
    live_ = 0;
    metadata_next_ = 0;
    reads_due_ = 0;
    next_phase_ = 0;
    const uint32_t first = metadata_pages_ / segment_pages_;
    const auto old = static_cast<uint32_t>(kOldFiles * count);
    for (uint32_t s = first; s < count; ++s) s < old ? fill_with_old_files(s) : free_.push_back(s);
  }

  void fill_with_old_files(uint32_t segment) {
    const ssd::Lpn begin = segment * segment_pages_, end = begin + segment_pages_;
    for (ssd::Lpn at = begin; at < end; at += kFileRunPages)
      settle(new_extent(kUntilNoRoom), at, std::min(kFileRunPages, end - at));
    segments_[segment].written = segment_pages_;
  }

  void request() override {
    if (written_ >= next_phase_) begin_phase();
    while (!deaths_.empty() && deaths_.top().first <= written_) {
      const uint32_t extent = deaths_.top().second;
      deaths_.pop();
      die(extent);
    }
    const uint64_t before = written_;
    const size_t stream = pick_stream();
    const uint32_t pages = size_of(kPhone[stream].request_pages);
    if (stream == kMetadata)
      write_metadata(pages);
    else
      append(stream, pages, life_of(stream));
    while (live_ > static_cast<uint64_t>(kFull * pages_) && !old_files_.empty()) delete_old_file();
    read(written_ - before);
  }

  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random_.unit();
    return sum;
  }
  double exponential(double mean) { return -mean * std::log(1 - random_.unit()); }

  // Draws as many random numbers with drift as without.
  void begin_phase() {
    next_phase_ = written_ + static_cast<uint64_t>(kPhase * pages_);
    double total = 0;
    for (size_t s = 0; s < kPhone.size(); ++s) {
      const double life = normal(), share = normal();
      life_factor_[s] = drift_ ? std::clamp(std::exp(life), 0.125, 8.0) : 1;
      // Shares are of bytes, but requests are drawn.
      total += kPhone[s].share / kPhone[s].request_pages * (drift_ ? std::exp(share / 2) : 1);
      below_[s] = total;
    }
    for (double& below : below_) below /= total;
  }

  size_t pick_stream() {
    const double draw = random_.unit();
    size_t stream = 0;
    while (stream + 1 < below_.size() && draw >= below_[stream]) ++stream;
    return stream;
  }

  // Draws a geometric number from 1 on, of this mean.
  uint32_t size_of(double mean) {
    if (mean <= 1) return 1;
    const double pages = 1 + std::floor(std::log(1 - random_.unit()) / std::log(1 - 1 / mean));
    return static_cast<uint32_t>(std::min<double>(pages, segment_pages_));
  }

  uint64_t life_of(size_t stream) {
    const PhoneStream& phone = kPhone[stream];
    const double mean = random_.unit() < phone.short_share ? phone.short_life : phone.long_life;
    const double life = exponential(mean * pages_ * life_factor_[stream]);
    return mean == 0 ? kUntilNoRoom : written_ + static_cast<uint64_t>(life) + 1;
  }

  void write_metadata(uint32_t pages) {
    pages = std::min(pages, metadata_pages_ - metadata_next_);
    const Tag tag = tag_of(kMetadata);
    write_run(metadata_next_, pages, tag.vstream, tag.pstream);
    metadata_next_ = (metadata_next_ + pages) % metadata_pages_;
  }

  void append(size_t log, uint32_t pages, uint64_t dies) {
    if (free_.size() < kFreeSegments) clean();
    while (pages > 0) pages -= write_extent(log, new_extent(dies), pages);
  }

  uint32_t new_extent(uint64_t dies) {
    uint32_t index = static_cast<uint32_t>(extents_.size());
    if (unused_extents_.empty()) {
      extents_.emplace_back();
    } else {
      index = unused_extents_.back();
      unused_extents_.pop_back();
    }
    extents_[index] = {0, 0, dies};
    if (dies == kUntilNoRoom)
      old_files_.push_back(index);
    else
      deaths_.emplace(dies, index);
    return index;
  }

  // Writes as much of an extent as the open segment of the log takes.
  uint32_t write_extent(size_t log, uint32_t extent, uint32_t pages) {
    uint32_t& open = open_[log];
    if (open == kNoSegment) {
      SFS_ASSERT(!free_.empty());
      open = free_.front();
      free_.pop_front();
      segments_[open] = {0, 0, true};
    }
    Segment& segment = segments_[open];
    const uint32_t some = std::min(pages, segment_pages_ - segment.written);
    const ssd::Lpn first = open * segment_pages_ + segment.written;
    const Tag tag = tag_of(log);
    write_run(first, some, tag.vstream, tag.pstream);
    settle(extent, first, some);
    segment.written += some;
    if (segment.written == segment_pages_) {
      segment.open = false;
      open = kNoSegment;
    }
    return some;
  }

  void settle(uint32_t extent, ssd::Lpn first, uint32_t pages) {
    extents_[extent].first = first;
    extents_[extent].pages = pages;
    std::fill_n(extent_of_.begin() + first, pages, extent);
    segments_[first / segment_pages_].live += pages;
    live_ += pages;
  }

  void die(uint32_t index) {
    const Extent extent = extents_[index];
    unused_extents_.push_back(index);
    leave(extent);
    discard_around(extent);
    free_if_dead(extent.first / segment_pages_);
  }

  void leave(const Extent& extent) {
    std::fill_n(extent_of_.begin() + extent.first, extent.pages, kDead);
    segments_[extent.first / segment_pages_].live -= extent.pages;
    live_ -= extent.pages;
  }

  void discard_around(const Extent& extent) {
    const ssd::Lpn segment = extent.first / segment_pages_ * segment_pages_;
    ssd::Lpn begin = extent.first, end = extent.first + extent.pages;
    while (begin > segment && extent_of_[begin - 1] == kDead) --begin;
    while (end < segment + segment_pages_ && extent_of_[end] == kDead) ++end;
    if (end - begin >= kDiscardPages) discard(begin, end);
  }

  void discard(ssd::Lpn begin, ssd::Lpn end) {
    for (ssd::Lpn page = begin; page < end; ++page) {
      trim_page(page);
      extent_of_[page] = kDiscarded;
    }
  }

  void free_if_dead(uint32_t index) {
    const Segment& segment = segments_[index];
    if (segment.live != 0 || segment.open) return;
    discard(index * segment_pages_, (index + 1) * segment_pages_);
    segments_[index] = {};
    free_.push_back(index);
  }

  void delete_old_file() {
    const size_t which = random_.below(static_cast<uint32_t>(old_files_.size()));
    const uint32_t extent = old_files_[which];
    old_files_[which] = old_files_.back();
    old_files_.pop_back();
    die(extent);
  }

  void clean() {
    while (free_.size() < kFreeSegments) {
      const uint32_t emptiest = emptiest_segment();
      if (emptiest == kNoSegment || segments_[emptiest].live == segment_pages_) {
        SFS_ASSERT(!old_files_.empty());
        delete_old_file();
      } else {
        move_survivors(emptiest);
      }
    }
  }

  uint32_t emptiest_segment() const {
    uint32_t emptiest = kNoSegment;
    for (uint32_t s = metadata_pages_ / segment_pages_; s < segments_.size(); ++s) {
      const Segment& segment = segments_[s];
      if (segment.written != segment_pages_ || segment.open) continue;
      if (emptiest == kNoSegment || segment.live < segments_[emptiest].live) emptiest = s;
    }
    return emptiest;
  }

  void move_survivors(uint32_t index) {
    const ssd::Lpn begin = index * segment_pages_, end = begin + segment_pages_;
    for (ssd::Lpn page = begin; page < end;) {
      const uint32_t moved = extent_of_[page];
      if (moved >= kDiscarded) {
        ++page;
        continue;
      }
      const Extent extent = extents_[moved];
      page = extent.first + extent.pages;
      leave(extent);
      uint32_t left = extent.pages - write_extent(kColdData, moved, extent.pages);
      while (left > 0) left -= write_extent(kColdData, new_extent(extent.dies), left);
    }
    free_if_dead(index);
  }

  // Reads anywhere in the written pages; streams are not told apart.
  void read(uint64_t written) {
    for (reads_due_ += kReadsAWrite * static_cast<double>(written); reads_due_ >= kReadPages;
         reads_due_ -= kReadPages) {
      const ssd::Lpn first = random_.below(pages_ - kReadPages);
      read_run(first, kReadPages);
    }
  }

  const bool drift_;
  const uint32_t segment_pages_, metadata_pages_;
  std::vector<Segment> segments_;
  std::vector<uint32_t> extent_of_;  // by page, or kDead, kDiscarded
  std::vector<Extent> extents_;
  std::vector<uint32_t> unused_extents_;
  std::vector<uint32_t> old_files_;  // extents without a death of their own
  std::priority_queue<Death, std::vector<Death>, std::greater<>> deaths_;
  std::deque<uint32_t> free_;
  std::array<uint32_t, kLogs> open_{};
  std::array<double, kPhone.size()> life_factor_{}, below_{};
  uint64_t live_ = 0, next_phase_ = 0;
  ssd::Lpn metadata_next_ = 0;
  double reads_due_ = 0;
};

}  // namespace

std::unique_ptr<OpSource> make_smartphone(const GeneratorOptions& options) {
  return std::make_unique<Smartphone>(options, true);
}

std::unique_ptr<OpSource> make_smartphone_steady(const GeneratorOptions& options) {
  return std::make_unique<Smartphone>(options, false);
}

}  // namespace streamfs::lab
