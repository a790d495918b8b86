#include "classifierd/src_core/savings_shadow.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/mix.h"
#include "base/types.h"
#include "base/wire/telemetry.h"
#include "classifierd/src_core/record_check.h"
#include "classifierd/src_core/shadow_device.h"
#include "emulator/geometry.h"

namespace streamfs::classifier {

using wire::TelemetryRecord;

namespace {

constexpr uint64_t kFollowedTogether = 16;  // pages
// Greedy collection of smaller blocks finds emptier ones than the whole device would.
constexpr uint32_t kBlockPagesLeast = 64;

// A device of `settings` that is `stride` times smaller, its blocks as well as far as that goes.
emulator::Geometry smaller(const SavingsShadow::Settings& settings, uint32_t streams,
                           emulator::GcMode gc_mode, uint64_t stride) {
  emulator::Geometry out;
  const uint64_t groups = div_round_up(settings.capacity_pages, stride * kFollowedTogether);
  out.user_pages = static_cast<uint32_t>(groups * kFollowedTogether);
  const uint32_t least = std::min(settings.block_pages, kBlockPagesLeast);
  out.pages_per_block = std::max(static_cast<uint32_t>(settings.block_pages / stride), least);
  out.streams = static_cast<uint16_t>(streams);
  out.gc_mode = gc_mode;
  // Blocks that did not become smaller by as much must not eat the spare by being kept free, or by
  // being open: half full as a rule, and of several streams half are taken to be in use.
  const double open =
      (gc_mode == emulator::GcMode::kOwnFrontier ? out.frontiers() : out.streams + 1.0) *
      (streams == 1 ? 0.5 : 0.25);
  const double shrunk = static_cast<double>(settings.block_pages) / static_cast<double>(stride);
  const double pages = out.user_pages * (1 + settings.spare) +
                       (out.low_water + open) * (out.pages_per_block - shrunk);
  out.blocks = std::max(static_cast<uint32_t>(out.needed_blocks()),
                        static_cast<uint32_t>(std::lround(pages / out.pages_per_block)));
  return out;
}

}  // namespace

// Writes and trims that wait until it is known how soon what they wrote died.
class Hindsight {
 public:
  Hindsight(uint32_t pages, uint32_t streams)
      : window_(pages), latest_(pages, kNone), shifts_(shifts_for(streams)) {}

  void wrote(uint32_t page) {
    died(page);
    latest_[page] = first_ + waiting_.size();
    waiting_.push_back({page, kAlive});
  }
  void trimmed(uint32_t page) {
    died(page);
    latest_[page] = kNone;
    waiting_.push_back({page, kTrimmed});
  }
  bool due() const { return waiting_.size() > window_; }
  // The oldest one, told to visit.write(page, stream) or visit.trim(page).
  template <typename Visit>
  void settle(Visit&& visit) {
    const Entry entry = waiting_.front();
    waiting_.pop_front();
    if (latest_[entry.page] == first_) latest_[entry.page] = kNone;
    ++first_;
    if (entry.life == kTrimmed) return visit.trim(entry.page);
    uint32_t stream = 0;
    while (stream < shifts_.size() &&
           (entry.life == kAlive || entry.life >= window_ >> shifts_[stream]))
      ++stream;
    visit.write(entry.page, stream);
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  static constexpr uint32_t kAlive = UINT32_MAX, kTrimmed = UINT32_MAX - 1;
  struct Entry {
    uint32_t page;
    uint32_t life;
  };
  static std::vector<uint32_t> shifts_for(uint32_t streams) {
    std::vector<uint32_t> out =
        streams <= 4 ? std::vector<uint32_t>{7, 3, 1} : std::vector<uint32_t>{9, 7, 5, 3, 2, 1};
    if (out.size() >= streams) out.resize(streams - 1);
    return out;
  }
  void died(uint32_t page) {
    const uint64_t at = latest_[page];
    if (at == kNone) return;
    waiting_[at - first_].life = static_cast<uint32_t>(first_ + waiting_.size() - at);
  }

  const uint32_t window_;
  uint64_t first_ = 0;  // number of the oldest entry
  std::deque<Entry> waiting_;
  std::vector<uint64_t> latest_;  // by page: number of the entry that wrote it
  const std::vector<uint32_t> shifts_;
};

class SavingsShadow::Part {
 public:
  Part(const Settings& settings, uint64_t stride)
      : streams_(settings.pstreams),
        off_(smaller(settings, 1, emulator::GcMode::kOwnFrontier, stride)),
        placed_(smaller(settings, settings.pstreams, settings.gc_mode, stride)),
        oracle_(smaller(settings, settings.pstreams, settings.gc_mode, stride)),
        hindsight_(smaller(settings, 1, settings.gc_mode, stride).user_pages, settings.pstreams) {}

  void write(uint32_t page, uint32_t stream) {
    ++counts_.written;
    put(page, stream);
  }
  void put(uint32_t page, uint32_t stream) {
    counts_.refused += off_.write(page, 0) && placed_.write(page, frontier(stream)) ? 0 : 1;
    hindsight_.wrote(page);
    if (hindsight_.due()) hindsight_.settle(Settled{*this});
  }
  void trim(uint32_t page) {
    off_.trim(page);
    placed_.trim(page);
    hindsight_.trimmed(page);
    if (hindsight_.due()) hindsight_.settle(Settled{*this});
  }
  void release(uint32_t stream) {
    if (stream < streams_) placed_.seal(frontier(stream));
  }
  Counts counts() const {
    Counts out = counts_;
    out.off_copied = off_.copied();
    out.placed_copied = placed_.copied();
    out.oracle_copied = oracle_.copied();
    return out;
  }

 private:
  struct Settled {
    Part& part;
    void write(uint32_t page, uint32_t stream) {
      ++part.counts_.oracle_written;
      part.oracle_.write(page, part.frontier(stream));
    }
    void trim(uint32_t page) { part.oracle_.trim(page); }
  };

  emulator::FrontierId frontier(uint32_t stream) const {
    return static_cast<emulator::FrontierId>(std::min(stream, streams_ - 1));
  }

  const uint32_t streams_;
  ShadowDevice off_, placed_, oracle_;
  Hindsight hindsight_;
  Counts counts_;
};

SavingsShadow::SavingsShadow(const Settings& settings)
    : capacity_(settings.capacity_pages), stride_(uint64_t{settings.one_in} * settings.parts) {
  const bool sound = settings.capacity_pages > 0 && settings.capacity_pages <= kCapacityBlocksMax &&
                     settings.pstreams > 0 && settings.pstreams <= emulator::kMaxStreams &&
                     settings.block_pages > 0 && settings.one_in > 0 && settings.parts > 0 &&
                     settings.spare > 0 && settings.spare <= 1;
  if (!sound) throw std::invalid_argument("no such device can be followed");
  for (uint32_t i = 0; i < settings.parts; ++i)
    parts_.push_back(std::make_unique<Part>(settings, stride_));
}

SavingsShadow::~SavingsShadow() = default;

SavingsShadow::Place SavingsShadow::place_of(uint64_t chunk) const {
  const uint64_t group = chunk / stride_;
  const uint64_t which = (chunk % stride_ + mix64(group) % stride_) % stride_;
  if (which >= parts_.size()) return {nullptr, 0};
  return {parts_[which].get(), static_cast<uint32_t>(group * kFollowedTogether)};
}

template <typename Visit>
void SavingsShadow::each_followed(uint64_t first, uint64_t end, Visit visit) {
  while (first < end) {
    const uint64_t stop = std::min(end, (first / kFollowedTogether + 1) * kFollowedTogether);
    const Place place = place_of(first / kFollowedTogether);
    for (; place.part != nullptr && first < stop; ++first)
      visit(*place.part, place.page + static_cast<uint32_t>(first % kFollowedTogether));
    first = stop;
  }
}

void SavingsShadow::fill(uint64_t pages, uint64_t first) {
  first = std::min(first, capacity_);
  each_followed(first, first + std::min(pages, capacity_ - first),
                [](Part& part, uint32_t page) { part.put(page, UINT32_MAX); });
}

void SavingsShadow::release(uint32_t stream) {
  for (const auto& part : parts_) part->release(stream);
}

void SavingsShadow::feed(std::span<const TelemetryRecord> records) {
  for (const TelemetryRecord& record : records) {
    if (!believable(record, capacity_)) continue;
    const uint64_t end = record.block + record.pages;
    if (record.kind == wire::TelemetryKind::kTrim) {
      each_followed(record.block, end, [](Part& part, uint32_t page) { part.trim(page); });
    } else {
      written_ += record.pages;
      each_followed(record.block, end,
                    [&](Part& part, uint32_t page) { part.write(page, record.pstream); });
    }
  }
}

std::vector<SavingsShadow::Counts> SavingsShadow::counts() const {
  std::vector<Counts> out;
  for (const auto& part : parts_) out.push_back(part->counts());
  return out;
}

}  // namespace streamfs::classifier
