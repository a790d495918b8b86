// Hostile media: each medium that a fuzzer found a mistake with (tests/fuzz) is a test of its own.
// Damage is refused or reported: no assert, no read outside, nothing of another file is given away.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/directory.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

class HostileMedia : public ::testing::Test {
 protected:
  // Closes the filesystem, so that its media can be damaged.
  void close() {
    fs_.close();
    geometry_.emplace(*Geometry::from(super()));
  }
  Superblock super() { return *load_superblock(fs_.region(), false); }
  pmem::Region& region() { return fs_.region(); }

  // Takes the one name in the root away that leads there.
  void clear_name(InodeId id) {
    const InodeImage root = load_image(region(), InodeId{super().root_inode});
    for (uint32_t index = 0; index < kDirSlotsPerUnit; ++index) {
      const auto entry = decode_entry(region(), root.chain, index);
      if (entry && entry->id == id) region().store_word(slot_offset(root.chain, index), 0);
    }
  }
  void store(InodeId id, InodeImage next) {
    next.checksum = inode_checksum(next);
    region().store(inode_offset(id), std::bit_cast<InodeWords>(next));
  }
  void set_kind(uint64_t unit, UnitKind kind) {
    const uint64_t at = geometry_->region_offset(RegionKind::kHeapMap, unit);
    const uint64_t shift = at % kWordSize * 8;
    region().store_masked(round_down(at, kWordSize), uint64_t{0xff} << shift,
                          uint64_t{static_cast<uint8_t>(kind)} << shift);
  }
  // Puts a record of these sections at a ring's start, its checksum right.
  void forge_record(uint64_t sequence, RecordHeader header, const std::vector<uint64_t>& sections) {
    std::vector<uint64_t> words(kHeaderWords);
    words.insert(words.end(), sections.begin(), sections.end());
    header.sequence_words = sequence | uint64_t{words.size()} << 48;
    std::memcpy(words.data(), &header, sizeof(header));
    header.checksum = record_checksum(words, geometry_->super().journal_seed);
    std::memcpy(words.data(), &header, sizeof(header));
    region().store(geometry_->ring_offset(0), words);
  }

  Filesystem fs_{{.meta_bytes = 2 << 20, .data_blocks = 4096}};
  std::optional<Geometry> geometry_;
};

TEST_F(HostileMedia, AWatermarkThatNoJournalReachesIsRefused) {
  close();
  for (const uint64_t watermark : {~uint64_t{0}, kMaxSequence + 1}) {
    region().store_word(kWatermarkOffset, watermark);
    const auto recovered = recover_journal(region(), *geometry_);
    ASSERT_FALSE(recovered.ok());
    EXPECT_EQ(recovered.error().code, EIO);
  }
}

TEST_F(HostileMedia, ARecordWithASequenceThatNoJournalReachesIsNone) {
  close();
  const uint64_t target = geometry_->unit_offset(30);
  RecordHeader header{};
  header.patches = 1;
  forge_record(kSequenceMask, header, {(target / kCellSize) << 32 | 1, 77});
  const auto recovered = recover_journal(region(), *geometry_);
  ASSERT_TRUE(recovered.ok());
  EXPECT_EQ(recovered->records_found, 0U);
  EXPECT_EQ(region().load(target), 0U);
  // The same record with a sequence that may be.
  forge_record(kMaxSequence, header, {(target / kCellSize) << 32 | 1, 77});
  ASSERT_TRUE(recover_journal(region(), *geometry_).ok());
  EXPECT_EQ(region().load(target), 77U);
}

TEST_F(HostileMedia, ASegmentThatCutsARingIsRefused) {
  close();
  Superblock cut = super();
  auto& rings = cut.regions[static_cast<size_t>(RegionKind::kRings)].segments;
  // The second half of the ring would be read from beyond META's end.
  rings[0].length = kRingSize / 2;
  rings[1] = {cut.meta_size - kUnitSize, kUnitSize};
  auto& heap = cut.regions[static_cast<size_t>(RegionKind::kHeap)].segments[0];
  heap.length -= kUnitSize;
  cut.ring_count = 1;
  rings[2] = {rings[0].offset + kRingSize / 2, kRingSize / 2 - kUnitSize};
  const auto geometry = Geometry::from(cut);
  ASSERT_FALSE(geometry.ok());
  EXPECT_EQ(geometry.error().code, EINVAL);
}

TEST_F(HostileMedia, ExtensionsOfTheLogThatAreEmptyOrLeaveOneOutAreRefused) {
  close();
  const uint64_t first = pack_range({1024, 256}), second = pack_range({2048, 256});
  const uint64_t empty = pack_range({1024, 0});
  const auto code = [&](std::initializer_list<uint64_t> extensions) {
    Superblock changed = super();
    std::ranges::copy(extensions, changed.log_extensions);
    const auto geometry = Geometry::from(changed);
    return geometry.ok() ? 0 : geometry.error().code;
  };
  EXPECT_EQ(code({first, second}), 0);
  EXPECT_EQ(code({empty}), EINVAL);  // blocks around it were in it for some, and free for others
  EXPECT_EQ(code({first, empty}), EINVAL);
  EXPECT_EQ(code({0, first}), EINVAL);  // nobody would look for it
  EXPECT_EQ(code({first, 0, second}), EINVAL);
}

TEST_F(HostileMedia, WithoutARootDirectoryNothingIsNamedAgainAndNothingMounts) {
  const InodeId file = fs_.file("file");
  close();
  Superblock wrong = super();
  wrong.root_inode = file.value;
  ASSERT_TRUE(store_superblock(region(), wrong).ok());
  EXPECT_EQ(Engine::open(region(), super(), fs_.clock(), {false, false}).error().code, EIO);
  const auto first = check(region(), super(), {.repair = true});
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(std::ranges::all_of(first->problems, &CheckReport::Problem::repaired));
  const auto second = check(region(), super(), {.repair = true});
  ASSERT_TRUE(second.ok());
  for (const auto& problem : second->problems) EXPECT_FALSE(problem.repaired) << problem.text;
}

// The root's names are in a damaged unit, so /lost+found cannot be made.
TEST_F(HostileMedia, ALoopThatCannotBeNamedAgainIsNotCalledRepaired) {
  const InodeId top = fs_.directory("top");
  const InodeId below = fs_.directory("below", top);
  fs_.file("name", below);
  close();
  const InodeImage root = load_image(region(), InodeId{super().root_inode});
  const InodeImage inner = load_image(region(), below);
  // The name in `below` leads to `top`.
  for (uint64_t at = 0; at < sizeof(DirSlot); at += kWordSize) {
    const uint64_t from = slot_offset(root.chain, 0) + at;
    region().store_word(slot_offset(inner.chain, 0) + at, region().load(from));
  }
  InodeImage up = load_image(region(), top);
  up.parent = below.value;
  store(top, up);
  clear_name(top);
  InodeImage wrong = root;
  wrong.chain = geometry_->meta_size();
  store(InodeId{super().root_inode}, wrong);
  const auto loops = [&] {
    const auto report = check(region(), super(), {.repair = true});
    EXPECT_TRUE(report.ok());
    int found = 0;
    for (const auto& problem : report->problems) {
      if (problem.text.find("only directories below it") == std::string::npos) continue;
      ++found;
      EXPECT_FALSE(problem.repaired) << problem.text;
    }
    return found;
  };
  EXPECT_EQ(loops(), 1);
  EXPECT_EQ(loops(), 1) << "it stays";
}

TEST_F(HostileMedia, ANameIsFollowedAgainOnceItsUnitIsKnownToHoldInodes) {
  std::vector<InodeId> made;
  for (int i = 0; i < 40; ++i) made.push_back(fs_.directory("d" + std::to_string(i)));
  close();
  const auto unit_of = [&](InodeId id) { return geometry_->unit_of(inode_offset(id)); };
  const auto damaged = std::ranges::find_if(
      made, [&](InodeId id) { return unit_of(id) != unit_of(InodeId{super().root_inode}); });
  ASSERT_LT(damaged + 1, made.end());
  ASSERT_EQ(unit_of(*damaged), unit_of(damaged[1]));  // the second name is met later, and believed
  region().store_word(inode_offset(*damaged) + offsetof(InodeImage, mtime), 1);
  set_kind(unit_of(*damaged).value_or(0), UnitKind::kExtents);
  const auto first = check(region(), super(), {.repair = true});
  ASSERT_TRUE(first.ok());
  for (const auto& problem : first->problems)
    EXPECT_EQ(problem.text.find("does not exist"), std::string::npos) << problem.text;
  const auto second = check(region(), super(), {.repair = true});
  ASSERT_TRUE(second.ok());
  for (const auto& problem : second->problems) EXPECT_FALSE(problem.repaired) << problem.text;
}

TEST_F(HostileMedia, TheUnitOfALostDirectoryHoldsNoInodesWhateverTheMapSays) {
  const InodeId lost = fs_.directory("lost"), file = fs_.file("file", lost);
  close();
  const uint64_t unit = *geometry_->unit_of(load_image(region(), lost).chain);
  clear_name(lost);
  set_kind(unit, UnitKind::kInodes);
  set_kind(geometry_->heap_units() - 1, UnitKind::kExtents);
  const auto first = check(region(), super(), {.repair = true});
  ASSERT_TRUE(first.ok());
  for (const auto& problem : first->problems) EXPECT_TRUE(problem.repaired) << problem.text;
  const auto second = check(region(), super(), {});
  ASSERT_TRUE(second.ok());
  for (const auto& problem : second->problems) ADD_FAILURE() << "left: " << problem.text;
  fs_.open();
  EXPECT_EQ(fs_->lookup(lost, "file")->id, file);
}

TEST_F(HostileMedia, LostAndFoundTakesNoSlotThatANameLeadsTo) {
  const InodeId dangling = fs_.file("dangling"), lost = fs_.file("lost");
  close();
  // Its slot free, its name there; and an inode that has lost its name, to be named again.
  region().store_word(inode_offset(dangling), 0);
  clear_name(lost);
  ASSERT_TRUE(check(region(), super(), {.repair = true}).ok());
  fs_.open();
  EXPECT_EQ(fs_.lookup_error("dangling"), EIO);
  const auto folder = fs_->lookup(fs_.root(), "lost+found");
  ASSERT_TRUE(folder.ok());
  EXPECT_NE(folder->id, dangling);
  EXPECT_TRUE(fs_.exists("#" + std::to_string(lost.value), folder->id));
  fs_.abandon();
}

// ---- The log on DATA

class MemoryLog final : public LogDevice {
 public:
  explicit MemoryLog(uint64_t blocks) : bytes(blocks * kBlockSize) {}
  Result<void> write(BlockNo first, ConstBytes from) override {
    if (!fits(first, from.size())) return Error{EINVAL};
    std::memcpy(&bytes[first.value * kBlockSize], from.data(), from.size());
    return {};
  }
  Result<void> read(BlockNo first, Bytes to) override {
    if (!fits(first, to.size())) return Error{EINVAL};
    std::memcpy(to.data(), &bytes[first.value * kBlockSize], to.size());
    return {};
  }
  Result<void> flush() override { return {}; }
  void discard(BlockNo first, uint64_t count) override {
    ASSERT_TRUE(fits(first, count * kBlockSize));
    std::memset(&bytes[first.value * kBlockSize], 0xa5, count * kBlockSize);
  }
  bool fits(BlockNo first, uint64_t length) const {
    return first.value < bytes.size() / kBlockSize &&
           length <= bytes.size() - first.value * kBlockSize;
  }
  std::vector<std::byte> bytes;
};

class HostileLog : public ::testing::Test {
 protected:
  static constexpr uint64_t kMetaSize = 2 * 1024 * 1024;
  static constexpr uint64_t kDataBlocks = 4096;

  void SetUp() override {
    FormatOptions options;
    options.data_blocks = kDataBlocks;
    options.meta_log = true;
    const auto plan = plan_format(kMetaSize, pmem::MetaClass::kVolatile, options);
    ASSERT_TRUE(plan.ok());
    ASSERT_TRUE(format(*region_, *plan, Timestamp{1, 0}).ok());
    const Geometry geometry = *Geometry::from(*load_superblock(*region_, false));
    label_ = make_label(geometry.super()).label;
    Journal journal(*region_, geometry);
    ASSERT_TRUE(MetadataLog::start(*region_, geometry, journal, device_, label_).ok());
    std::memset(&device_.bytes[label_.snapshot_first_block[0] * kBlockSize], 0, kBlockSize);
  }

  int restore_error(const DataLabel& label) {
    const auto restored = restore_from_log(*region_, label, device_);
    return restored.ok() ? 0 : restored.error().code;
  }
  // Changes the header of the only snapshot, its checksum right.
  void change_snapshot(const std::function<void(SnapshotHeader&)>& change) {
    std::byte* at = &device_.bytes[label_.snapshot_first_block[1] * kBlockSize];
    SnapshotHeader header;
    std::memcpy(&header, at, sizeof(header));
    change(header);
    header.checksum = 0;
    header.checksum = crc32c(std::as_bytes(std::span(&header, 1)));
    std::memcpy(at, &header, sizeof(header));
  }

  std::unique_ptr<pmem::Region> region_ =
      pmem::make_memory_region(kMetaSize, pmem::MetaClass::kVolatile);
  MemoryLog device_{kDataBlocks};
  DataLabel label_{};
};

TEST_F(HostileLog, PlacesOutsideTheReservedBlocksAreRefused) {
  ASSERT_EQ(restore_error(label_), 0);
  for (uint64_t DataLabel::* field :
       {&DataLabel::log_first_block, &DataLabel::log_blocks, &DataLabel::snapshot_blocks}) {
    DataLabel wrong = label_;
    for (const uint64_t value : {uint64_t{1} << 61, ~uint64_t{0}, label_.*field + kDataBlocks}) {
      wrong.*field = value;
      EXPECT_EQ(restore_error(wrong), EIO) << value;
    }
  }
  DataLabel twice = label_;
  twice.snapshot_first_block[1] = twice.snapshot_first_block[0];
  EXPECT_EQ(restore_error(twice), EIO);
}

TEST_F(HostileLog, ASnapshotOfImpossibleSizeOrPlaceIsNone) {
  const auto is_none = [&] { return restore_error(label_) == ENODATA; };
  EXPECT_FALSE(is_none());
  uint64_t pages = 0, block = 0;
  change_snapshot([&](SnapshotHeader& header) {
    pages = std::exchange(header.pages, uint64_t{1} << 61);  // times 8 is nothing
    block = header.first_block;
  });
  EXPECT_TRUE(is_none());
  change_snapshot([&](SnapshotHeader& header) {
    header.pages = pages;
    header.first_block = ~uint64_t{0} - 1;
  });
  EXPECT_TRUE(is_none());
  change_snapshot([&](SnapshotHeader& header) {
    header.first_block = block;
    header.generation += 1;  // the other area's
  });
  EXPECT_TRUE(is_none());
  change_snapshot([](SnapshotHeader& header) { header.generation -= 1; });
  EXPECT_EQ(restore_error(label_), 0);
}

// The sanitizer is the judge of this test.
TEST_F(HostileLog, AChunkWithoutRecordsIsNothingToReplay) {
  SnapshotHeader snapshot;
  std::memcpy(&snapshot, &device_.bytes[label_.snapshot_first_block[1] * kBlockSize],
              sizeof(snapshot));
  LogChunkHeader chunk{};
  chunk.magic = wire::kChunkMagic;
  chunk.number = snapshot.first_chunk;
  chunk.last_sequence = snapshot.sequence;
  std::memcpy(chunk.uuid, label_.geometry.uuid, sizeof(chunk.uuid));
  chunk.payload_checksum = crc32c({});
  chunk.checksum = crc32c(std::as_bytes(std::span(&chunk, 1)));
  std::memcpy(&device_.bytes[(label_.log_first_block + snapshot.first_block) * kBlockSize], &chunk,
              sizeof(chunk));
  EXPECT_EQ(restore_error(label_), 0);
}

// Returns the error of a label whose checksum is right; 0 if it is accepted.
int label_error(DataLabel label) {
  label.checksum = label_checksum(label);
  std::vector<std::byte> block(kBlockSize);
  std::memcpy(block.data(), &label, sizeof(label));
  const auto parsed = parse_label(block);
  return parsed.ok() ? 0 : parsed.error().code;
}

TEST_F(HostileLog, ALabelWithAnotherKindOfSuperblockIsDamaged) {
  DataLabel wrong_magic = label_, wrong_version = label_;
  wrong_magic.geometry.magic ^= 1;
  wrong_version.geometry.version ^= 2;
  EXPECT_EQ(label_error(wrong_magic), EIO);
  EXPECT_EQ(label_error(wrong_version), EIO);
}

TEST_F(HostileLog, ALabelWithUnknownFeaturesIsRefused) {
  DataLabel label = label_;
  EXPECT_EQ(label_error(label), 0);
  label.geometry.features |= kKnownFeatures + 1;
  EXPECT_EQ(label_error(label), EINVAL);
}

}  // namespace
}  // namespace streamfs::meta
