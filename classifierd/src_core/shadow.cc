#include "classifierd/src_core/shadow.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

// Addresses are numbered as they come: a filesystem that moves about has met more than it holds.
constexpr uint64_t kNumbersPerLive = 8;

uint64_t stride_of(const Shadow::Settings& settings) {
  const uint64_t live = std::max<uint64_t>(settings.live_pages, settings.block_pages);
  return std::max<uint64_t>(live / settings.sampled_pages, 1);
}

}  // namespace

Shadow::Shadow(const Settings& settings)
    : classes_(settings.classes), sample_(stride_of(settings), 1) {
  whole_ = {std::max<uint64_t>(settings.live_pages, settings.block_pages),
            settings.spare,
            settings.block_pages,
            settings.gc_mode,
            settings.victim,
            classes_};
  live_max_ = sample_.share_of(whole_.pages);
  ssd::Geometry geometry = smaller(whole_, sample_.stride(), live_max_);
  blocks_ = geometry.blocks;
  geometry.user_pages *= kNumbersPerLive;
  pages_max_ = geometry.user_pages;
  for (uint32_t i = 0; i < settings.candidates; ++i) {
    devices_.push_back(std::make_unique<ShadowDevice>(geometry));
  }
  const double begins = std::clamp(settings.begins, 0.0, 1.0);
  fit(static_cast<uint64_t>(static_cast<double>(live_max_) * begins));
}

Shadow::~Shadow() = default;

template <typename Tag>
void Shadow::write(uint64_t number, const Tag& tag) {
  const uint32_t page = numbers_.number(number);
  for (size_t d = 0; d < devices_.size(); ++d)
    refused_ += page < pages_max_ && devices_[d]->write(page, tag(d)) ? 0 : 1;
}

// Lets the devices grow to what has lived in them. All see the same writes, so one is asked.
void Shadow::fit() {
  const uint64_t lived = std::min(devices_.front()->peak_live(), live_max_);
  if (lived > live_) fit(lived);
}

void Shadow::fit(uint64_t live) {
  live_ = std::max<uint64_t>(live, 1);
  const uint32_t blocks = smaller(whole_, sample_.stride(), live_).blocks;
  for (const auto& device : devices_) device->withhold(blocks_ - std::min(blocks, blocks_));
}

void Shadow::fill(uint64_t pages, uint8_t cls, uint64_t first) {
  if (cls >= classes_) throw std::invalid_argument("a class that the shadow devices do not have");
  sample_.each(first, first + pages, [&](uint64_t, uint64_t, uint64_t number) {
    write(number, [&](size_t) { return cls; });
  });
  fit();
}

void Shadow::feed(std::span<const TelemetryRecord> records, std::span<const uint8_t> tags) {
  if (std::ranges::any_of(tags, [&](uint8_t tag) { return tag >= classes_; })) {
    throw std::invalid_argument("a class that the shadow devices do not have");
  }
  const size_t pages = tags.size() / devices_.size();
  size_t at = 0;
  for (const TelemetryRecord& record : records) {
    if (!believable(record, wire::kCapacityBlocksMax)) continue;
    if (record.kind == wire::TelemetryKind::kTrim) {
      known_.clear();
      numbers_.known(sample_.number_from(record.block),
                     sample_.number_from(record.block + record.pages), known_);
      for (const auto [page, number] : known_) {
        if (number >= pages_max_) continue;
        for (const auto& device : devices_) device->trim(number);
      }
      continue;
    }
    if (record.pages > pages - at)
      throw std::invalid_argument("as many tags as pages written are needed");
    sample_.each(record.block, record.block + record.pages,
                 [&](uint64_t, uint64_t block, uint64_t number) {
                   ++written_;
                   const size_t tag = at + (block - record.block);
                   write(number, [&](size_t device) { return tags[device * pages + tag]; });
                 });
    at += record.pages;
    fit();
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
