#include "tests/fuzz/image.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"

namespace streamfs::fuzz {
namespace {

using meta::CreateRequest;
using meta::Engine;

constexpr uint64_t kGuardBytes = uint64_t{1} << 30;

InodeId make(Engine& engine, InodeId parent, std::string_view name, uint32_t mode,
             std::string_view target = {}) {
  CreateRequest request;
  request.mode = mode;
  request.symlink_target = target;
  request.rdev = 0x105;
  const auto made = engine.create(parent, name, request);
  SFS_ASSERT(made.ok());
  return made->id;
}

void must(const Result<void>& done) {
  SFS_ASSERT(done.ok());
}

void populate_names(Engine& engine) {
  const InodeId root = engine.root();
  const InodeId directory = make(engine, root, "dir", S_IFDIR | 0755);
  const InodeId below = make(engine, directory, "sub", S_IFDIR | 0700);
  make(engine, below, "deep", S_IFREG | 0600);
  make(engine, directory, std::string(100, 'l'), S_IFREG | 0644);
  const InodeId many = make(engine, root, "many", S_IFDIR | 01777);
  const InodeId linked = make(engine, many, "linked", S_IFREG | 0644);
  for (char c = 'a'; c < 'a' + 14; ++c) {  // two units of slots, and no inode to walk for each
    SFS_ASSERT(engine.link(linked, many, std::string(250, c)).ok());
  }
  make(engine, root, "short", S_IFLNK | 0777, "dir/sub/deep");
  make(engine, root, "long", S_IFLNK | 0777, std::string(1000, 't'));
  make(engine, root, "fifo", S_IFIFO | 0600);
  make(engine, root, "device", S_IFCHR | 0600);
  meta::Acl acl{7, 5, 5, 7, {{false, 1000, 7}, {true, 100, 4}}};
  must(engine.set_xattr(directory, meta::kDefaultAclName, meta::format_acl(acl), 0));
  const InodeId inherits = make(engine, directory, "inherits", S_IFREG | 0644);
  must(engine.set_xattr(inherits, meta::kAccessAclName, meta::format_acl(acl), 0));
}

void populate_files(Engine& engine) {
  const InodeId root = engine.root();
  const InodeId plain = make(engine, root, "plain", S_IFREG | 0644);
  must(write_blocks(engine, plain, 0, 9));
  must(engine.set_xattr(plain, "user.small", "value", 0));
  const InodeId holes = make(engine, root, "holes", S_IFREG | 0644);
  for (uint64_t at = 0; at < 12; ++at) must(write_blocks(engine, holes, at * 3, 2));
  must(engine.set_xattr(holes, "user.large", std::string(6000, 'x'), 0));
  must(engine.set_xattr(holes, "security.capability", "12345678", 0));
  SFS_ASSERT(engine.link(holes, root, "holes-too").ok());
}

// Inodes without a name, that somebody still held; and blocks not yet trimmed.
void populate_orphans(Engine& engine) {
  const InodeId root = engine.root();
  CreateRequest unnamed;
  unnamed.mode = S_IFREG | 0600;
  SFS_ASSERT(engine.create_unnamed(root, unnamed).ok());
  const InodeId open = make(engine, root, "open", S_IFREG | 0600);
  must(write_blocks(engine, open, 0, 5));
  SFS_ASSERT(engine.unlink(root, "open").ok());
  const InodeId shorter = make(engine, root, "shorter", S_IFREG | 0600);
  must(write_blocks(engine, shorter, 0, 8));
  must(engine.set_size(shorter, kBlockSize));
  must(engine.commit_inode(shorter, 1));
}

void split(meta::SegmentList& list, uint64_t units) {
  const meta::Segment whole = list.segments[0];
  const uint64_t first = units * meta::kUnitSize;
  list.segments[0].length = first;
  list.segments[1] = {whole.offset + first, whole.length - first};
}

// Synced blocks of a file: some expired, some with entries that build on others.
void populate_intent_log(pmem::Region& region, Engine& engine) {
  const auto log = meta::IntentLog::open(region, engine.geometry());
  SFS_ASSERT(log.ok());
  (*log)->start();
  const InodeId id = engine.lookup(engine.root(), "plain")->id;
  const auto pieces = engine.map(id, FileBlock{0}, 9);
  SFS_ASSERT(pieces.ok());
  std::vector<std::byte> content(kBlockSize), before;
  meta::IntentLog::Place place;
  for (uint64_t i = 0; i < 12; ++i) {
    if (i == 4) (*log)->expire((*log)->cut());
    before = content;
    for (uint64_t line = 0; line < 64; line += 7 + i)
      content[line * kLineSize] = static_cast<std::byte>(i + 1);
    const auto batch = (*log)->begin(1);
    const meta::Piece& piece = pieces->front();
    place = batch->append({id,
                           BlockNo{piece.block.value + i % std::min<uint64_t>(piece.length, 4)},
                           {},
                           content,
                           place,
                           before});
    region.fence(batch->flushed());
    batch->keep();
  }
}

Image make_image(uint8_t choice) {
  const bool logs = choice == kIntentImage;
  const uint64_t meta_bytes = kMetaBytes + (logs ? meta::kRingSize : 0);
  const auto region = pmem::make_memory_region(meta_bytes, pmem::MetaClass::kPersistent);
  meta::FormatOptions options;
  options.data_blocks = kDataBlocks;
  options.random_seed = 7;
  options.label = "fuzz";
  options.intent_log_bytes = logs ? meta::kRingSize : 0;
  auto super = meta::plan_format(meta_bytes, pmem::MetaClass::kPersistent, options);
  SFS_ASSERT(super.ok());
  if (choice == 2) split(super->regions[static_cast<size_t>(meta::RegionKind::kHeap)], 20);
  must(meta::format(*region, *super, Timestamp{1, 0}));
  FixedClock clock;
  auto engine =
      Engine::open(*region, *meta::load_superblock(*region, false), clock, {false, false});
  SFS_ASSERT(engine.ok());
  populate(**engine);
  if (choice == 1) (*engine)->journal().checkpoint();
  populate_orphans(**engine);
  if (logs) populate_intent_log(*region, **engine);
  if (choice == 1 || logs) {
    make(**engine, (*engine)->root(), "last", S_IFDIR | 0755);
  } else {
    must((*engine)->close_clean(0));
  }
  engine->reset();

  return finish_image(*region, *meta::Geometry::from(*meta::load_superblock(*region, false)));
}

}  // namespace

GuardedWords::GuardedWords(uint64_t bytes) {
  auto* const from = static_cast<std::byte*>(
      ::mmap(nullptr, bytes + 2 * kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  SFS_ASSERT(from != MAP_FAILED);
  SFS_ASSERT(::mprotect(from + kGuardBytes, bytes, PROT_READ | PROT_WRITE) == 0);
  words_ = {reinterpret_cast<uint64_t*>(from + kGuardBytes), bytes / kWordSize};
}

GuardedWords::GuardedWords(GuardedWords&& other) noexcept
    : words_(std::exchange(other.words_, {})) {}

GuardedWords::~GuardedWords() {
  if (words_.empty()) return;
  ::munmap(reinterpret_cast<std::byte*>(words_.data()) - kGuardBytes,
           words_.size_bytes() + 2 * kGuardBytes);
}

Image finish_image(const pmem::Region& region, const meta::Geometry& geometry) {
  Image image{GuardedWords(region.size()), geometry, nullptr, {}};
  const std::span<uint64_t> words = image.words.get();
  std::memcpy(words.data(), region.at(0), words.size_bytes());
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] != 0) image.live.push_back(at * kWordSize);
  }
  image.region = std::make_unique<pmem::ScratchRegion>(words);
  return image;
}

void populate(Engine& engine) {
  populate_names(engine);
  populate_files(engine);
  meta::VStreamSlot slot{};
  slot.head = 5;
  slot.lifetime_bytes = 1 << 20;
  must(engine.store_vstream(2, slot));
}

Image& image(uint8_t choice) {
  static std::array<std::unique_ptr<Image>, kImages> images;
  auto& made = images[choice % kImages];
  if (!made) made = std::make_unique<Image>(make_image(choice % kImages));
  return *made;
}

Result<void> write_blocks(Engine& engine, InodeId id, uint64_t first, uint64_t count) {
  SFS_ASSIGN(const auto pieces, engine.map(id, FileBlock{first}, count));
  meta::WriteResult result;
  result.epoch = 1;
  result.end_offset = (first + count) * kBlockSize;
  const auto checksum = [&](BlockNo from, uint64_t blocks) {
    for (uint64_t i = 0; i < blocks; ++i) {
      result.checksums.push_back({BlockNo{from.value + i}, static_cast<uint32_t>(first + i + 77)});
    }
  };
  for (const meta::Piece& piece : pieces) {
    if (piece.unwritten) {
      result.added.push_back({piece.first, piece.block, piece.length, {}});
      checksum(piece.block, piece.length);
      continue;
    }
    if (!piece.hole) {
      SFS_TRY(engine.begin_overwrite(id, {&piece, 1}));
      checksum(piece.block, piece.length);
      continue;
    }
    for (uint64_t done = 0; done < piece.length;) {
      const auto run = engine.blocks().reserve(piece.length - done, kDefaultPStream, {});
      if (!run.ok()) break;  // the pieces before had room and are written
      result.added.push_back({FileBlock{piece.first.value + done}, run->first, run->count, {}});
      checksum(run->first, run->count);
      done += run->count;
    }
  }
  SFS_ASSIGN(meta::SlotRoom room, engine.slot_room(2 * result.added.size() + 1));
  SFS_TRY(engine.finish_write(id, result, room));
  return engine.commit_inode(id, 1);
}

Result<void> preallocate(Engine& engine, InodeId id, uint64_t first, uint64_t count) {
  SFS_ASSIGN(const auto pieces, engine.map(id, FileBlock{first}, count));
  std::vector<meta::WriteResult::NewPiece> added;
  for (const meta::Piece& piece : pieces) {
    if (!piece.hole) continue;
    const auto run = engine.blocks().reserve(piece.length, kDefaultPStream, {});
    if (run.ok()) added.push_back({piece.first, run->first, run->count, {}});
  }
  SFS_ASSIGN(meta::SlotRoom room, engine.slot_room(added.size() + 1));
  return engine.preallocate(id, added, room);
}

}  // namespace streamfs::fuzz
