#include "classifierd/src_core/own_places.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/wire/record_check.h"
#include "base/wire/telemetry.h"

namespace streamfs::classifier {

using wire::TelemetryKind;
using wire::TelemetryRecord;

namespace {

constexpr int64_t kPassMs = 500, kPassPressedMs = 100;
constexpr int64_t kEpochMs = 5000, kEpochPressedMs = 500, kEpochIdleMs = 1000;
constexpr uint64_t kEpochPages = (512ULL << 20) / 4096;

}  // namespace

OwnPlaces::OwnPlaces(uint64_t capacity_pages, uint64_t log_pages)
    : capacity_(capacity_pages), log_pages_(log_pages) {
  if (log_pages >= capacity_pages || capacity_pages > wire::kCapacityBlocksMax)
    throw std::invalid_argument("no room for files");
}

void OwnPlaces::hold(uint64_t first, uint64_t pages) {
  first = std::min(first, capacity_);
  pages = std::min(pages, capacity_ - first);
  if (pages == 0) return;
  held_[first] = std::max(held_[first], first + pages);
}

std::vector<TelemetryRecord> OwnPlaces::take(std::span<const TelemetryRecord> records) {
  if (fresh_) {
    fresh_ = false;
    uint64_t at = 0;
    for (const auto& [first, end] : held_) {
      if (first > at) free_.push_back({at, first - at});
      at = std::max(at, end);
    }
    if (at < capacity_) free_.push_back({at, capacity_ - at});
    for (const Run& run : free_) free_pages_ += run.pages;
  }
  Out out;
  for (const TelemetryRecord& record : records) {
    if (!believable(record, capacity_)) continue;
    go_on(record.time_ms, out);
    if (record.kind == TelemetryKind::kTrim) {
      trim(record.block, record.block + record.pages);
    } else {
      write(record, record.time_ms, out);
    }
  }
  return out;
}

// Passes that were due by now, the last of them for all.
void OwnPlaces::go_on(int64_t now, Out& out) {
  if (!begun_) {
    begun_ = true;
    passed_ms_ = closed_ms_ = wrote_ms_ = now;
  }
  const int64_t period = pressed() ? kPassPressedMs : kPassMs;
  if (now - passed_ms_ < period) return;
  passed_ms_ = now - (now - passed_ms_) % period;
  if (epoch_ends(passed_ms_)) {
    closed_ms_ = passed_ms_;
    dirty_ = false;
    dirty_pages_ = 0;
    dead_.insert(dead_.end(), replaced_.begin(), replaced_.end());
    dead_pages_ += replaced_pages_;
    replaced_.clear();
    replaced_pages_ = 0;
  }
  pass(out);
}

bool OwnPlaces::epoch_ends(int64_t now) const {
  if (!dirty_) return replaced_pages_ > 0;
  const int64_t age = now - dirty_since_ms_;
  return age >= (pressed() ? kEpochPressedMs : kEpochMs) || now - wrote_ms_ >= kEpochIdleMs ||
         dirty_pages_ >= kEpochPages;
}

void OwnPlaces::pass(Out& out) {
  for (const Run& run : dead_) {
    for (uint64_t done = 0; done < run.pages;) {
      const uint64_t some =
          std::min<uint64_t>(run.pages - done, std::numeric_limits<uint32_t>::max());
      TelemetryRecord record{};
      record.block = run.first + done;
      record.pages = static_cast<uint32_t>(some);
      record.request_pages = record.pages;
      record.kind = TelemetryKind::kTrim;
      out.push_back(record);
      done += some;
    }
    free_.push_back(run);
  }
  free_pages_ += dead_pages_;
  dead_.clear();
  dead_pages_ = 0;
}

void OwnPlaces::write(const TelemetryRecord& record, int64_t now, Out& out) {
  TelemetryRecord run = record;
  run.pages = 0;
  for (uint32_t i = 0; i < record.pages; ++i) {
    const uint64_t page = place_of(record.block + i, now, out);
    if (run.pages > 0 && page == run.block + run.pages) {
      ++run.pages;
      continue;
    }
    if (run.pages > 0) out.push_back(run);
    run.block = page;
    run.pages = 1;
    run.request_offset = record.request_offset + i;
  }
  out.push_back(run);
  if (!dirty_) dirty_since_ms_ = now;
  dirty_ = true;
  dirty_pages_ += record.pages;
  wrote_ms_ = now;
  written_ += record.pages;
  waited_ += static_cast<double>(dead_pages_ + replaced_pages_) * record.pages;
}

void OwnPlaces::trim(uint64_t first, uint64_t end) {
  free_held(first, end);
  const auto free_page = [&](uint64_t page) {
    const auto at = places_.find(page);
    if (at == places_.end()) return;
    give_up(at->second);
    places_.erase(at);
  };
  if (end - first <= places_.size()) {
    for (uint64_t page = first; page < end; ++page) free_page(page);
    return;
  }
  std::vector<uint64_t> hit;
  for (const auto& [page, place] : places_)
    if (page >= first && page < end) hit.push_back(page);
  std::ranges::sort(hit);
  std::ranges::for_each(hit, free_page);
}

void OwnPlaces::give_up(const Place& place) {
  const bool committed = place.born_ms < closed_ms_;
  std::vector<Run>& runs = committed ? replaced_ : dead_;
  ++(committed ? replaced_pages_ : dead_pages_);
  if (!runs.empty() && place.page == runs.back().first + runs.back().pages) {
    ++runs.back().pages;
  } else {
    runs.push_back({place.page, 1});
  }
}

uint64_t OwnPlaces::place_of(uint64_t page, int64_t now, Out& out) {
  const auto at = places_.find(page);
  if (at != places_.end()) return at->second.page;
  const bool held = take_held(page);
  const Place place{held ? page : take_free(out), held ? std::numeric_limits<int64_t>::min() : now};
  places_.emplace(page, place);
  return place.page;
}

// Whether it was held; now it has been written to.
bool OwnPlaces::take_held(uint64_t page) {
  const auto after = held_.upper_bound(page);
  if (after == held_.begin()) return false;
  const auto at = std::prev(after);
  const uint64_t end = at->second;
  if (page >= end) return false;
  if (page + 1 < end) held_.emplace(page + 1, end);
  if (page == at->first) {
    held_.erase(at);
  } else {
    at->second = page;
  }
  return true;
}

void OwnPlaces::free_held(uint64_t first, uint64_t end) {
  auto at = held_.upper_bound(first);
  if (at != held_.begin()) --at;
  while (at != held_.end() && at->first < end) {
    const uint64_t begins = at->first, ends = at->second;
    if (ends <= first) {
      ++at;
      continue;
    }
    at = held_.erase(at);
    const uint64_t from = std::max(begins, first), to = std::min(ends, end);
    if (begins < from) held_.emplace(begins, from);
    if (to < ends) held_.emplace(to, ends);
    replaced_.push_back({from, to - from});
    replaced_pages_ += to - from;
  }
}

// Where nothing is free, a writer waits for what was freed.
uint64_t OwnPlaces::take_free(Out& out) {
  if (free_.empty()) {
    dead_.insert(dead_.end(), replaced_.begin(), replaced_.end());
    dead_pages_ += replaced_pages_;
    replaced_.clear();
    replaced_pages_ = 0;
    pass(out);
  }
  if (free_.empty()) throw std::invalid_argument("the files are more than the device holds");
  Run& run = free_.front();
  const uint64_t page = run.first++;
  if (--run.pages == 0) free_.pop_front();
  --free_pages_;
  return page;
}

}  // namespace streamfs::classifier
