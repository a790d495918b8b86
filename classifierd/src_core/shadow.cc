#include "classifierd/src_core/shadow.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/mix.h"
#include "base/wire/telemetry.h"
#include "classifierd/src_core/record_check.h"
#include "classifierd/src_core/shadow_device.h"
#include "emulator/geometry.h"

namespace streamfs::classifier {

using wire::TelemetryRecord;

namespace {

constexpr uint64_t kSampledTogether = 512;  // pages
// Sampled chunks may hold more than their share of what is live.
constexpr double kSlack = 0.02;
// Addresses are numbered as they come: a filesystem that moves about has met more than it holds.
constexpr uint64_t kNumbersPerLive = 8;
constexpr uint32_t kBlockPagesMin = 16;

// Blocks being filled at once, by the host and by copies.
uint32_t open_blocks(const emulator::Geometry& geometry) {
  if (geometry.gc_mode == emulator::GcMode::kOwnFrontier) return geometry.frontiers();
  return geometry.streams + (geometry.gc_mode == emulator::GcMode::kShared ? 1U : 0U);
}

emulator::Geometry geometry_of(const Shadow::Settings& settings, uint64_t live, uint32_t one_in) {
  emulator::Geometry geometry;
  geometry.user_pages = static_cast<uint32_t>(live * kNumbersPerLive);
  geometry.pages_per_block =
      std::max(settings.block_pages / one_in, std::min(settings.block_pages, kBlockPagesMin));
  geometry.streams = static_cast<uint16_t>(settings.classes);
  geometry.gc_mode = settings.gc_mode;
  const auto blocks_of = [&](double pages) {
    return static_cast<uint32_t>(std::ceil(pages / geometry.pages_per_block));
  };
  // Without as many as are open at once it could not collect its garbage.
  const double pages = static_cast<double>(live);
  const uint32_t needed =
      blocks_of(pages * (1 + kSlack)) + geometry.low_water + open_blocks(geometry) + 1;
  geometry.blocks = std::max(needed, blocks_of(pages * (1 + settings.spare + kSlack)) +
                                         static_cast<uint32_t>(emulator::kReserveBlocks));
  return geometry;
}

}  // namespace

Shadow::Shadow(const Settings& settings) : classes_(settings.classes) {
  const uint64_t live = std::max<uint64_t>(settings.live_pages, settings.block_pages);
  one_in_ = static_cast<uint32_t>(std::max<uint64_t>(live / settings.sampled_pages, 1));
  live_ = live / one_in_;
  const emulator::Geometry geometry = geometry_of(settings, live_, one_in_);
  pages_max_ = static_cast<uint32_t>(geometry.user_pages);
  for (uint32_t i = 0; i < settings.candidates; ++i) {
    devices_.push_back(std::make_unique<ShadowDevice>(geometry));
  }
}

Shadow::~Shadow() = default;

bool Shadow::sampled(uint64_t block) const {
  return one_in_ == 1 || mix64(block / kSampledTogether) % one_in_ == 0;
}

void Shadow::fill(uint64_t pages, uint8_t cls, uint64_t first) {
  if (cls >= classes_) throw std::invalid_argument("a class that the shadow devices do not have");
  for (uint64_t block = first; block < first + pages;) {
    const uint64_t end = std::min(first + pages, (block / kSampledTogether + 1) * kSampledTogether);
    for (; block < end && sampled(block); ++block) {
      const uint32_t page = numbers_.number(block);
      for (const auto& device : devices_)
        refused_ += page < pages_max_ && device->write(page, cls) ? 0 : 1;
    }
    block = end;
  }
}

void Shadow::feed(std::span<const TelemetryRecord> records, std::span<const uint8_t> tags) {
  if (std::ranges::any_of(tags, [&](uint8_t tag) { return tag >= classes_; })) {
    throw std::invalid_argument("a class that the shadow devices do not have");
  }
  const size_t pages = tags.size() / devices_.size();
  size_t at = 0;
  for (const TelemetryRecord& record : records) {
    if (!believable(record, kCapacityBlocksMax)) continue;
    if (record.kind == wire::TelemetryKind::kTrim) {
      known_.clear();
      numbers_.known(record.block, record.block + record.pages, known_);
      for (const auto [page, number] : known_) {
        if (number >= pages_max_) continue;
        for (const auto& device : devices_) device->trim(number);
      }
      continue;
    }
    for (uint32_t i = 0; i < record.pages; ++i, ++at) {
      if (at >= pages) throw std::invalid_argument("as many tags as pages written are needed");
      if (!sampled(record.block + i)) continue;
      const uint32_t page = numbers_.number(record.block + i);
      ++written_;
      for (size_t d = 0; d < devices_.size(); ++d) {
        const bool fits = page < pages_max_ && devices_[d]->write(page, tags[d * pages + at]);
        refused_ += fits ? 0 : 1;
      }
    }
  }
}

void Shadow::fork(uint32_t serving) {
  if (serving >= devices_.size()) throw std::invalid_argument("no candidate of this number");
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    if (i != serving) devices_[i]->go_on_from(*devices_[serving]);
  }
}

void Shadow::release(uint32_t candidate, uint8_t cls) {
  if (candidate >= devices_.size() || cls >= classes_) {
    throw std::invalid_argument("no candidate or class of this number");
  }
  devices_[candidate]->seal(cls);
}

std::vector<uint64_t> Shadow::copied() const {
  std::vector<uint64_t> out;
  for (const auto& device : devices_) out.push_back(device->copied());
  return out;
}

}  // namespace streamfs::classifier
