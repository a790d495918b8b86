#include "tests/unit/meta/filesystem.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/mirror_region.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

template <typename T>
T expect(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.error().message();
  return result.ok() ? std::move(result).value() : T{};
}

void expect(const Result<void>& result) {
  EXPECT_TRUE(result.ok()) << result.error().message();
}

}  // namespace

Filesystem::Filesystem(Size size)
    : cache_bytes_(size.cache_bytes),
      region_(pmem::make_memory_region(size.meta_bytes, pmem::MetaClass::kPersistent)) {
  if (size.mirrored) {
    region_ = std::make_unique<pmem::MirrorRegion>(
        std::move(region_),
        pmem::make_memory_region(size.meta_bytes, pmem::MetaClass::kPersistent));
  }
  FormatOptions options;
  options.mirror = size.mirrored;
  options.data_blocks = size.data_blocks;
  options.label = "test";
  options.random_seed = 7;
  const Superblock super =
      expect(plan_format(size.meta_bytes, pmem::MetaClass::kPersistent, options));
  expect(format(*region_, super, clock_.now()));
  open();
}

Filesystem::~Filesystem() {
  if (engine_) close();
}

void Filesystem::open() {
  const Superblock super = expect(load_superblock(*region_, true));
  const Engine::Options options{
      .read_only = false, .start_background = false, .cache_bytes = cache_bytes_};
  engine_ = expect(Engine::open(*region_, super, clock_, options));
  ASSERT_NE(engine_, nullptr);
}

void Filesystem::close() {
  expect(engine_->close_clean(0));
  engine_.reset();
  expect_sound();
}

void Filesystem::reopen() {
  close();
  open();
}

void Filesystem::crash() {
  engine_.reset();
  open();
}

void Filesystem::expect_sound() {
  const Superblock super = expect(load_superblock(*region_, false));
  for (const auto& problem : expect(check(*region_, super, {})).problems) {
    ADD_FAILURE() << "check: " << problem.text;
  }
}

void Filesystem::set_link_count(InodeId id, uint32_t count) {
  engine_->journal().checkpoint();
  abandon();
  InodeImage image = load_image(*region_, id);
  image.nlink = count;
  image.checksum = inode_checksum(image);
  const auto words = std::bit_cast<InodeWords>(image);
  region_->store(inode_offset(id), words);
  open();
}

InodeId Filesystem::file(std::string_view name, InodeId parent) {
  return expect(engine_->create(parent_or_root(parent), name, node(S_IFREG | 0644))).id;
}

InodeId Filesystem::directory(std::string_view name, InodeId parent) {
  return expect(engine_->create(parent_or_root(parent), name, node(S_IFDIR | 0755))).id;
}

int Filesystem::unlink(std::string_view name, InodeId parent) {
  const auto done = engine_->unlink(parent_or_root(parent), name);
  return done ? 0 : done.error().code;
}

int Filesystem::lookup_error(std::string_view name, InodeId parent) {
  const auto found = engine_->lookup(parent_or_root(parent), name);
  if (!found) return found.error().code;
  engine_->forget(found->id, 1);
  return 0;
}

std::vector<std::string> Filesystem::names(InodeId directory) {
  std::vector<std::string> names;
  expect(engine_->read_directory(directory, 0, [&](const DirectoryEntry& entry) {
    if (entry.name != "." && entry.name != "..") names.emplace_back(entry.name);
    return true;
  }));
  return names;
}

Attributes Filesystem::attributes(InodeId id) {
  return expect(engine_->attributes(id));
}

bool Filesystem::is_allocated(BlockNo block) {
  const uint64_t word =
      region_->load(engine_->geometry().bitmap_word(RegionKind::kBlockBitmap, block.value / 64));
  return (word >> block.value % 64 & 1) != 0;
}

void Filesystem::write(InodeId id, uint64_t first, uint64_t count, uint64_t epoch) {
  WriteResult result;
  uint64_t parts = 0;  // of unwritten extents
  result.epoch = epoch;
  result.end_offset = (first + count) * kBlockSize;
  for (const Piece& piece : expect(engine_->map(id, FileBlock{first}, count))) {
    const auto sum = [&](BlockNo block) {
      result.checksums.push_back({block, static_cast<uint32_t>(block.value + 1)});
    };
    if (piece.unwritten) {
      ++parts;
      result.added.push_back({piece.first, piece.block, piece.length, kDefaultVStream});
      for (uint64_t i = 0; i < piece.length; ++i) sum(BlockNo{piece.block.value + i});
      continue;
    }
    if (!piece.hole) {
      expect(engine_->begin_overwrite(id, {&piece, 1}));
      for (uint64_t i = 0; i < piece.length; ++i) sum(BlockNo{piece.block.value + i});
      continue;
    }
    for (uint64_t done = 0; done < piece.length;) {
      const BlockRun run =
          expect(engine_->blocks().reserve(piece.length - done, kDefaultPStream, std::nullopt));
      ASSERT_GT(run.count, 0U);
      result.added.push_back(
          {FileBlock{piece.first.value + done}, run.first, run.count, kDefaultVStream});
      for (uint64_t i = 0; i < run.count; ++i) sum(BlockNo{run.first.value + i});
      done += run.count;
    }
  }
  SlotRoom room = expect(engine_->slot_room(parts > 0 ? 2 * parts + 1 : 0));
  expect(engine_->finish_write(id, result, room));
}

void Filesystem::preallocate(InodeId id, uint64_t first, uint64_t count) {
  std::vector<WriteResult::NewPiece> pieces;
  for (const Piece& piece : expect(engine_->map(id, FileBlock{first}, count))) {
    for (uint64_t done = 0; piece.hole && done < piece.length; done += pieces.back().length) {
      const BlockRun run =
          expect(engine_->blocks().reserve(piece.length - done, kDefaultPStream, std::nullopt));
      pieces.push_back({FileBlock{piece.first.value + done}, run.first, run.count, {}});
    }
  }
  SlotRoom room = expect(engine_->slot_room(pieces.size() + unwritten_extents(count) + 1));
  expect(engine_->preallocate(id, pieces, room));
}

void Filesystem::commit(InodeId id, uint64_t epoch) {
  expect(engine_->commit_inode(id, epoch));
}

void Filesystem::forget_and_free(InodeId id, uint64_t count) {
  EXPECT_TRUE(engine_->forget(id, count));
  expect(engine_->free_orphan(id));
}

}  // namespace streamfs::meta
