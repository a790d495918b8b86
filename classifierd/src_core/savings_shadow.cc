#include "classifierd/src_core/savings_shadow.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/wire/record_check.h"
#include "base/wire/telemetry.h"
#include "classifierd/src_core/chunk_sample.h"
#include "classifierd/src_core/shadow_device.h"
#include "classifierd/src_core/smaller_device.h"
#include "ssd/geometry.h"

namespace streamfs::classifier {

using wire::TelemetryRecord;

namespace {

WholeDevice whole(const SavingsShadow::Settings& settings, uint32_t streams, ssd::GcMode gc_mode) {
  return {settings.capacity_pages, settings.spare, settings.block_pages, gc_mode,
          settings.victim,         streams};
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
  Part(const Settings& settings, const ChunkSample& sample)
      : Part(settings, sample.stride(), sample.share_of(settings.capacity_pages)) {}

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

  Part(const Settings& settings, uint64_t stride, uint64_t pages)
      : streams_(settings.pstreams),
        off_(smaller(whole(settings, 1, ssd::GcMode::kOwnFrontier), stride, pages)),
        placed_(smaller(whole(settings, streams_, settings.gc_mode), stride, pages)),
        oracle_(smaller(whole(settings, streams_, settings.gc_mode), stride, pages)),
        hindsight_(static_cast<uint32_t>(pages), streams_) {}

  ssd::FrontierId frontier(uint32_t stream) const {
    return static_cast<ssd::FrontierId>(std::min(stream, streams_ - 1));
  }

  const uint32_t streams_;
  ShadowDevice off_, placed_, oracle_;
  Hindsight hindsight_;
  Counts counts_;
};

SavingsShadow::SavingsShadow(const Settings& settings)
    : capacity_(settings.capacity_pages),
      sample_(uint64_t{settings.one_in} * settings.parts, settings.parts) {
  const bool sound =
      settings.capacity_pages > 0 && settings.capacity_pages <= wire::kCapacityBlocksMax &&
      settings.pstreams > 0 && settings.pstreams <= ssd::kMaxStreams && settings.block_pages > 0 &&
      settings.one_in > 0 && settings.parts > 0 && settings.spare > 0 && settings.spare <= 1;
  if (!sound) throw std::invalid_argument("no such device can be followed");
  for (uint32_t i = 0; i < settings.parts; ++i)
    parts_.push_back(std::make_unique<Part>(settings, sample_));
}

SavingsShadow::~SavingsShadow() = default;

void SavingsShadow::fill(uint64_t pages, uint64_t first) {
  first = std::min(first, capacity_);
  sample_.each(first, first + std::min(pages, capacity_ - first),
               [&](uint64_t part, uint64_t, uint64_t number) {
                 parts_[part]->put(static_cast<uint32_t>(number), UINT32_MAX);
               });
}

void SavingsShadow::release(uint32_t stream) {
  for (const auto& part : parts_) part->release(stream);
}

void SavingsShadow::feed(std::span<const TelemetryRecord> records) {
  for (const TelemetryRecord& record : records) {
    if (!believable(record, capacity_)) continue;
    const bool trim = record.kind == wire::TelemetryKind::kTrim;
    written_ += trim ? 0 : record.pages;
    const auto take = [&](uint64_t part, uint64_t, uint64_t number) {
      const auto page = static_cast<uint32_t>(number);
      if (trim) return parts_[part]->trim(page);
      parts_[part]->write(page, record.pstream);
    };
    sample_.each(record.block, record.block + record.pages, take);
  }
}

std::vector<SavingsShadow::Counts> SavingsShadow::counts() const {
  std::vector<Counts> out;
  for (const auto& part : parts_) out.push_back(part->counts());
  return out;
}

}  // namespace streamfs::classifier
