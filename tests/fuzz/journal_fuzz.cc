#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/walk.h"

namespace streamfs::fuzz {
namespace {

// Builds records of the input's items and puts one after another into the first ring.
class RingFiller {
 public:
  RingFiller(pmem::Region& region, const Image& image)
      : region_(region),
        image_(image),
        at_(image.geometry.ring_offset(0)),
        end_(at_ + meta::kRingSize),
        sequence_(region.load(meta::kWatermarkOffset)) {}

  void add(const Item& item) {
    const uint64_t live = image_.live[item.where % image_.live.size()];
    const bool wild = (item.argument & 0x80) != 0;  // the place is the value's, not a live one
    switch (item.kind % 8) {
      case 0:
        patches_.push_back((wild ? item.value >> 32 : live / meta::kCellSize) << 32 |
                           uint64_t{1} << item.argument % 32);
        patches_.push_back(item.value);
        ++header_.patches;
        break;
      case 1:
        masks_.insert(masks_.end(), {wild ? item.value : live,
                                     uint64_t{0xff} << item.argument % 8 * 8, item.value});
        ++header_.masks;
        break;
      case 2:
        runs_.push_back(wild ? item.value
                             : meta::pack_run(item.where % kDataBlocks, item.value % 70,
                                              static_cast<meta::RunKind>(item.argument % 4)));
        ++header_.runs;
        break;
      case 3:
        bodies_.push_back(wild ? item.value : meta::pack_body(live, item.argument));
        ++header_.bodies;
        break;
      case 4:
        proofs_.push_back(wild ? item.value : sequence_ + item.argument % 8 - 3);
        ++header_.proofs;
        break;
      case 5:
        finish(item);
        break;
      case 6:  // where the next record begins
        at_ =
            image_.geometry.ring_offset(0) + item.where * kLineSize % (meta::kRingSize - kLineSize);
        break;
      default:
        raw_ = item;
        sequence_ = item.argument % 2 == 0 ? sequence_ : item.value & meta::kSequenceMask;
    }
  }
  // With right checksums, unless the item says otherwise.
  void finish(const Item& item) {
    std::vector<uint64_t> record(meta::kHeaderWords);
    for (const auto* part : {&patches_, &masks_, &runs_, &bodies_, &proofs_}) {
      record.insert(record.end(), part->begin(), part->end());
    }
    header_.sequence_words = ++sequence_ | uint64_t{record.size()} << 48;
    seal(record, item.argument);
    const uint64_t bytes = round_up(record.size() * kWordSize, kLineSize);
    if (record.size() <= meta::kMaxRecordWords && bytes <= end_ - at_) {
      region_.store(at_, record);
      at_ += bytes;
    }
    header_ = {};
    raw_ = {};
    for (auto* part : {&patches_, &masks_, &runs_, &bodies_, &proofs_}) part->clear();
  }

 private:
  void seal(std::vector<uint64_t>& record, uint8_t how) {
    std::memcpy(record.data(), &header_, sizeof(header_));
    if (const auto view = meta::RecordView::parse(record)) {
      header_.body_checksum = view->body_checksum(region_, image_.geometry).value_or(0);
      if (how % 8 == 7) ++header_.body_checksum;  // torn, unless another record proves it
    }
    std::memcpy(record.data(), &header_, sizeof(header_));
    if (raw_.value != 0) record[raw_.where % record.size()] = raw_.value;
    std::memcpy(&header_, record.data(), sizeof(header_));
    header_.checksum = meta::record_checksum(record, image_.geometry.super().journal_seed);
    if (how % 16 == 15) ++header_.checksum;
    std::memcpy(record.data(), &header_, sizeof(header_));
  }

  pmem::Region& region_;
  const Image& image_;
  uint64_t at_;
  const uint64_t end_;
  uint64_t sequence_;
  meta::RecordHeader header_{};
  Item raw_{};
  std::vector<uint64_t> patches_, masks_, runs_, bodies_, proofs_;
};

}  // namespace

void run_journal(const Input& input) {
  Image& base = image(input.flags);
  pmem::ScratchRegion& region = *base.region;
  const Run run(region);
  RingFiller filler(region, base);
  for (const Item& item : input.items) filler.add(item);
  filler.finish({});

  const auto first = meta::recover_journal(region, base.geometry);
  if (!first.ok()) return;
  SFS_ASSERT(first->records_replayed <= first->records_found);
  const auto second = meta::recover_journal(region, base.geometry);
  SFS_ASSERT(second.ok() && second->records_found == 0);
  const auto super = meta::load_superblock(region, false);
  SFS_ASSERT(super.ok());  // no record may change it
  SFS_ASSERT(meta::check(region, *super, {}).ok());
  FixedClock clock;
  const auto engine = meta::Engine::open(region, *super, clock, {false, false});
  if (!engine.ok()) return;
  auto found = walk(**engine);
  operate(**engine, region, found, input.operations);
  (void)(*engine)->close_clean(0);
}

}  // namespace streamfs::fuzz
