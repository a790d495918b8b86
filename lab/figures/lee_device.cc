#include "lab/figures/lee_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/types.h"
#include "lab/workload/fat_volume.h"
#include "pmem/region.h"
#include "ssd/ftl/hybrid.h"
#include "ssd/ftl/log_block.h"
#include "ssd/geometry.h"
#include "ssd/media/pram_blocks.h"
#include "ssd/media/serial_nand.h"

namespace streamfs::lab::figures {
namespace {

constexpr uint32_t kBlocks = 4096, kPagesPerBlock = 128;
constexpr uint32_t kSpareShare = 32;  // one block of so many is spare
constexpr uint64_t kWordProgramNs = 10'000, kWordReadNs = 80;

// Returns timings by the source's rates of its driver, LLD: 4.25 MB/s read, 1.7 MB/s written. The
// read of a spare area, a 32nd of a page, takes tR and its share of the rest.
ssd::SerialTiming lee_timing() {
  constexpr double kReadMbPerS = 4.25, kWriteMbPerS = 1.7;
  constexpr uint64_t kReadNs = 60'000, kEraseNs = 1'400'000;
  ssd::SerialTiming timing;
  timing.read_ns = static_cast<uint64_t>(kLeePageBytes * 1e3 / kReadMbPerS);
  timing.program_ns = static_cast<uint64_t>(kLeePageBytes * 1e3 / kWriteMbPerS);
  timing.spare_read_ns = kReadNs + (timing.read_ns - kReadNs) / 32;
  timing.erase_ns = kEraseNs;
  return timing;
}

Result<void> done_or(int error, const char* what) {
  if (error == 0) return {};
  return Error{error, what};
}

}  // namespace

std::string name_of(const LeeSetup& setup) {
  return fmt::format("{}{}", setup.hybrid ? "hFTL" : "LBFTL", setup.separated ? " + FSMS" : "");
}

const std::vector<LeeSetup>& lee_bars() {
  static const std::vector<LeeSetup> bars = {
      {}, {.separated = true}, {.hybrid = true}, {.hybrid = true, .separated = true}};
  return bars;
}

Result<ssd::Geometry> lee_geometry(uint32_t scale) {
  ssd::Geometry geometry;
  geometry.blocks = kBlocks / std::max(scale, 1u);
  geometry.pages_per_block = kPagesPerBlock;
  const uint32_t spare = geometry.blocks / kSpareShare;
  if (spare < 6)
    return Error{EINVAL, fmt::format("impossible geometry: scale 1/{} leaves {} blocks, {} of them "
                                     "spare; 6 are needed",
                                     scale, geometry.blocks, spare)};
  geometry.user_pages = (geometry.blocks - spare) * geometry.pages_per_block;
  return geometry;
}

FatShape lee_volume(const ssd::Geometry& geometry) {
  FatShape shape;
  shape.pages = geometry.user_pages;
  shape.page_bytes = kLeePageBytes;
  return shape;
}

Result<std::unique_ptr<LeeDevice>> LeeDevice::make(const LeeSetup& setup) {
  SFS_ASSIGN(const ssd::Geometry geometry, lee_geometry(setup.scale));
  std::unique_ptr<LeeDevice> device(new LeeDevice(setup, geometry));
  SFS_TRY(device->make_ftl(true));
  return device;
}

LeeDevice::LeeDevice(const LeeSetup& setup, const ssd::Geometry& geometry)
    : setup_(setup),
      geometry_(geometry),
      nand_(geometry, 0, lee_timing()),
      ftl_region_(pmem::make_memory_region(ssd::HybridFtl::region_bytes(geometry),
                                           pmem::MetaClass::kPersistent)),
      metadata_region_(pmem::make_memory_region(
          uint64_t{FatVolume::metadata_pages(lee_volume(geometry))} * kLeePageBytes,
          pmem::MetaClass::kPersistent)),
      blocks_(
          std::make_unique<ssd::PramBlocks>(*metadata_region_, kLeePageBytes, setup.selective)) {}

Result<void> LeeDevice::make_ftl(bool first) {
  if (!setup_.hybrid) {
    SFS_ASSIGN(ftl_, ssd::LogBlockFtl::make(geometry_, 0, nand_, counters_));
    auto& ftl = *std::get<std::unique_ptr<ssd::LogBlockFtl>>(ftl_);
    return first ? Result<void>() : done_or(ftl.recover(), "power-up");
  }
  if (first) SFS_TRY(ssd::HybridFtl::format(geometry_, *ftl_region_));
  SFS_ASSIGN(ftl_, ssd::HybridFtl::open(geometry_, *ftl_region_, nand_, counters_));
  return {};
}

Result<uint64_t> LeeDevice::restart() {
  const uint64_t before = nand_.busy_ns();
  SFS_TRY(make_ftl(false));
  return nand_.busy_ns() - before + words_read() * kWordReadNs;
}

int LeeDevice::write(uint32_t first, uint32_t pages) {
  return std::visit([&](auto& ftl) { return ftl->write(first, pages, 0, 0, nullptr); }, ftl_);
}

int LeeDevice::write_metadata(uint32_t page, ConstBytes now) {
  if (!setup_.separated) return write(page, 1);
  blocks_->write(page, now);
  return 0;
}

int LeeDevice::write_data(uint32_t first, uint32_t pages) {
  return write(first, pages);
}

void LeeDevice::trim(uint32_t first, uint32_t pages) {
  for (uint32_t page = first; page < first + pages; ++page)
    std::visit([&](auto& ftl) { ftl->trim(page); }, ftl_);
}

int LeeDevice::read(uint32_t page) {
  const ssd::Ppn at = std::visit([&](auto& ftl) { return ftl->location(page); }, ftl_);
  return at == ssd::kNoPage ? 0 : nand_.read(at, nullptr);
}

uint64_t LeeDevice::words_read() const {
  const auto* hybrid = std::get_if<std::unique_ptr<ssd::HybridFtl>>(&ftl_);
  return hybrid == nullptr || *hybrid == nullptr ? 0 : (*hybrid)->words_read();
}

// Selective programming reads the present words first.
uint64_t LeeDevice::now_ns() const {
  const uint64_t compared = setup_.selective ? metadata().words : 0;
  const uint64_t programmed = metadata().programmed + (setup_.hybrid ? ftl_words() : 0);
  return nand_.busy_ns() + programmed * kWordProgramNs + (compared + words_read()) * kWordReadNs;
}

uint64_t LeeDevice::ram_bytes() const {
  if (setup_.hybrid) return ssd::HybridFtl::ram_bytes();
  return std::get<std::unique_ptr<ssd::LogBlockFtl>>(ftl_)->ram_bytes();
}

Result<std::unique_ptr<LeeVolume>> LeeVolume::make(const LeeSetup& setup, double full) {
  SFS_ASSIGN(std::unique_ptr<LeeDevice> device, LeeDevice::make(setup));
  SFS_ASSIGN(FatVolume volume, FatVolume::make(lee_volume(device->geometry()), *device));
  std::unique_ptr<LeeVolume> made(new LeeVolume(std::move(device), std::move(volume)));
  constexpr uint32_t kFileClusters = 1024, kRecord = 16;
  for (uint32_t left = made->clusters(full); left > 0;) {
    const uint32_t some = std::min(left, kFileClusters);
    FatVolume::File file = 0;
    SFS_TRY(made->write_file(some, kRecord, file));
    left -= some;
  }
  return made;
}

uint32_t LeeVolume::clusters(double share) const {
  const uint64_t bytes = uint64_t{device_->geometry().user_pages} * kLeePageBytes;
  return static_cast<uint32_t>(share * static_cast<double>(bytes) / volume_.cluster_bytes());
}

double LeeVolume::mb_per_s(uint64_t clusters, uint64_t since_ns) const {
  return static_cast<double>(clusters * volume_.cluster_bytes()) * 1e3 /
         static_cast<double>(device_->now_ns() - since_ns);
}

Result<double> LeeVolume::write_file(uint32_t clusters, uint32_t record, FatVolume::File& file) {
  const uint64_t began = device_->now_ns();
  SFS_TRY(done_or(volume_.create(file), "create"));
  for (uint32_t done = 0; done < clusters; done += record)
    SFS_TRY(done_or(volume_.append(file, std::min(record, clusters - done)), "append"));
  return mb_per_s(clusters, began);
}

Result<double> LeeVolume::rewrite(FatVolume::File file, uint32_t record) {
  const uint64_t began = device_->now_ns();
  const uint32_t clusters = volume_.clusters_of(file);
  for (uint32_t done = 0; done < clusters; done += record)
    SFS_TRY(done_or(volume_.overwrite(file, done, std::min(record, clusters - done)), "overwrite"));
  return mb_per_s(clusters, began);
}

Result<double> LeeVolume::write_at_random(FatVolume::File file, uint64_t requests, uint64_t seed) {
  Random random(seed);
  const uint64_t began = device_->now_ns();
  for (uint64_t i = 0; i < requests; ++i)
    SFS_TRY(
        done_or(volume_.overwrite(file, random.below(volume_.clusters_of(file)), 1), "overwrite"));
  return mb_per_s(requests, began);
}

Result<void> LeeVolume::age(FatVolume::File file, uint64_t seed) {
  const Result<double> aged = write_at_random(file, clusters(0.5), ~seed);
  return aged.ok() ? Result<void>() : Result<void>(aged.error());
}

Result<void> LeeVolume::remove(FatVolume::File file, bool trim) {
  return done_or(volume_.remove(file, trim), "remove");
}

}  // namespace streamfs::lab::figures
