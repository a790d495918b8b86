#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/walk.h"

namespace streamfs::fuzz {
namespace {

// DATA is a region too, so that a run's end puts it back. Refuses what lies outside, as devices do.
class RegionDevice final : public meta::LogDevice {
 public:
  explicit RegionDevice(pmem::Region& region) : region_(region) {}
  Result<void> write(BlockNo first, ConstBytes bytes) override {
    if (!fits(first, bytes.size())) return Error{EINVAL, "beyond the device"};
    const auto* const words = reinterpret_cast<const uint64_t*>(bytes.data());
    SFS_ASSERT(reinterpret_cast<uintptr_t>(words) % kWordSize == 0);
    region_.store(first.value * kBlockSize, {words, bytes.size() / kWordSize});
    return {};
  }
  Result<void> read(BlockNo first, Bytes bytes) override {
    if (!fits(first, bytes.size())) return Error{EINVAL, "beyond the device"};
    std::memcpy(bytes.data(), region_.at(first.value * kBlockSize), bytes.size());
    return {};
  }
  Result<void> flush() override { return {}; }

 private:
  bool fits(BlockNo first, uint64_t bytes) const {
    const uint64_t blocks = region_.size() / kBlockSize;
    return first.value <= blocks && bytes / kBlockSize <= blocks - first.value;
  }
  pmem::Region& region_;
};

// A DATA whose log holds a snapshot and chunks after it. Its geometry is META's.
Image make_data() {
  const auto meta_region = pmem::make_memory_region(kMetaBytes, pmem::MetaClass::kVolatile);
  meta::FormatOptions options;
  options.data_blocks = kDataBlocks;
  options.meta_log = true;
  options.uuid = {7};
  const auto plan = meta::plan_format(kMetaBytes, pmem::MetaClass::kVolatile, options);
  SFS_ASSERT(plan.ok() && meta::format(*meta_region, *plan, Timestamp{1, 0}).ok());
  const auto super = meta::load_superblock(*meta_region, false);
  FixedClock clock;
  const auto engine = meta::Engine::open(*meta_region, *super, clock, {false, false});
  SFS_ASSERT(engine.ok());

  const auto data = pmem::make_memory_region(kDataBlocks * kBlockSize, pmem::MetaClass::kVolatile);
  RegionDevice device(*data);
  std::vector<std::byte> block(kBlockSize);
  const meta::DataLabel label = meta::make_label(*super).label;
  std::memcpy(block.data(), &label, sizeof(label));
  SFS_ASSERT(device.write(BlockNo{0}, block).ok());
  const auto log = meta::MetadataLog::start(*meta_region, (*engine)->geometry(),
                                            (*engine)->journal(), device, label);
  SFS_ASSERT(log.ok());
  populate(**engine);
  SFS_ASSERT((*log)->ship().ok());
  SFS_ASSERT(write_blocks(**engine, (*engine)->lookup((*engine)->root(), "plain")->id, 20, 3).ok());
  SFS_ASSERT((*log)->ship().ok());

  return finish_image(*data, (*engine)->geometry());
}

// Every checksum in the log made right: label, chunks, snapshots with their pages.
class LogFixer {
 public:
  explicit LogFixer(pmem::Region& data) : data_(data) {}

  void fix(const meta::DataLabel& places) {
    auto label = load<meta::DataLabel>(0);
    label.checksum = meta::label_checksum(label);
    store(0, label);
    for (const uint64_t first : places.snapshot_first_block) fix_snapshot(first * kBlockSize);
    for (uint64_t block = 0; block < places.log_blocks; ++block) {
      const uint64_t at = (places.log_first_block + block) * kBlockSize;
      if (data_.load(at) == 0) break;
      fix_chunk(at);
    }
  }

 private:
  template <typename T>
  T load(uint64_t offset) const {
    T object;
    std::memcpy(&object, data_.at(offset), sizeof(T));
    return object;
  }
  template <typename T>
  void store(uint64_t offset, const T& object) {
    std::array<uint64_t, sizeof(T) / kWordSize> words{};
    std::memcpy(words.data(), &object, sizeof(T));
    data_.store(offset, words);
  }
  // Nothing where the lengths lead out of the device: that no checksum mends.
  uint32_t crc_of(uint64_t offset, uint64_t length) const {
    if (offset > data_.size() || length > data_.size() - offset) return 0;
    return crc32c({data_.at(offset), length});
  }

  void fix_chunk(uint64_t at) {
    auto header = load<meta::LogChunkHeader>(at);
    header.payload_checksum = crc_of(at + sizeof(header), header.payload_bytes);
    header.checksum = 0;
    header.checksum = crc32c(std::as_bytes(std::span(&header, 1)));
    store(at, header);
  }

  void fix_snapshot(uint64_t at) {
    auto header = load<meta::SnapshotHeader>(at);
    if (header.magic == 0) return;
    const uint64_t pages = std::min<uint64_t>(header.pages, 256);
    const uint64_t index = at + kBlockSize;
    const uint64_t first =
        index + div_round_up(header.pages * sizeof(meta::SnapshotPage), kBlockSize) * kBlockSize;
    for (uint64_t i = 0; i < pages; ++i) {
      auto page = load<meta::SnapshotPage>(index + i * sizeof(meta::SnapshotPage));
      page.checksum = crc_of(first + i * kBlockSize, kBlockSize);
      store(index + i * sizeof(page), page);
    }
    header.index_checksum = crc_of(index, header.pages * sizeof(meta::SnapshotPage));
    header.checksum = 0;
    header.checksum = crc32c(std::as_bytes(std::span(&header, 1)));
    store(at, header);
  }

  pmem::Region& data_;
};

// The restored filesystem in use, with its log going on.
void use(pmem::Region& region, RegionDevice& device, const meta::DataLabel& label,
         const Input& input) {
  const auto super = meta::load_superblock(region, false);
  SFS_ASSERT(super.ok());
  const auto report = meta::check(region, *super, {.repair = true});
  if (!report.ok()) return;
  FixedClock clock;
  const auto engine = meta::Engine::open(region, *super, clock, {false, false});
  if (!engine.ok()) return;
  const auto log =
      meta::MetadataLog::start(region, (*engine)->geometry(), (*engine)->journal(), device, label);
  auto found = walk(**engine);
  operate(**engine, region, found, input.operations);
  if (!log.ok()) return;
  if ((*log)->ship().ok()) (void)(*log)->snapshot();
}

}  // namespace

void run_log(const Input& input) {
  static Image base = make_data();
  static const GuardedWords no_meta(kMetaBytes);
  static pmem::ScratchRegion region(no_meta.get());
  static const meta::DataLabel places = meta::make_label(base.geometry.super()).label;
  pmem::ScratchRegion& data = *base.region;
  const Run run(data);
  (void)apply_damage(data, base, input.items);
  if ((input.flags & kFixChecksums) != 0) LogFixer(data).fix(places);

  RegionDevice device(data);
  std::vector<std::byte> block(kBlockSize);
  SFS_ASSERT(device.read(BlockNo{0}, block).ok());
  const auto label = meta::parse_label(block);
  if (!label.ok()) return;
  for (const bool last : {false, true}) {
    if (last && (input.flags & kReadTwice) == 0) return;
    const Run each(region);
    const auto restored = meta::restore_from_log(region, *label, device);
    if (!restored.ok()) return;
    if (!last) use(region, device, *label, input);
  }
}

}  // namespace streamfs::fuzz
