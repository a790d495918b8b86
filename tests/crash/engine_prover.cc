#include "tests/crash/engine_prover.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"
#include "tests/crash/kept_twice.h"

namespace streamfs::meta {
namespace {

// ACLs are binary.
std::string readable(const std::string& value) {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (std::ranges::all_of(value, printable)) return value;
  return std::accumulate(value.begin(), value.end(), std::string("0x"),
                         [](std::string text, char c) {
                           constexpr std::string_view kDigits = "0123456789abcdef";
                           const auto byte = static_cast<uint8_t>(c);
                           return std::move(text) + kDigits[byte >> 4U] + kDigits[byte & 15U];
                         });
}

class TreeText {
 public:
  explicit TreeText(Engine& engine) : engine_(engine) {}
  std::string render() {
    walk(engine_.root(), "");
    return std::move(text_);
  }

 private:
  void walk(InodeId id, const std::string& path) {
    describe(id, path);
    const auto attributes = engine_.attributes(id);
    if (!attributes.ok() || !S_ISDIR(attributes->mode)) return;
    std::map<std::string, InodeId> children;
    const auto read = engine_.read_directory(id, 0, [&](const DirectoryEntry& entry) {
      if (entry.name != "." && entry.name != "..") children.emplace(entry.name, entry.id);
      return true;
    });
    if (!read.ok()) text_ += path + ": UNREADABLE " + read.error().message() + "\n";
    for (const auto& [name, child] : children) walk(child, path + "/" + name);
  }

  void describe(InodeId id, const std::string& path) {
    const auto a = engine_.attributes(id);
    if (!a.ok()) {
      text_ += path + ": BROKEN " + a.error().message() + "\n";
      return;
    }
    text_ += path + " mode=" + std::to_string(a->mode) + " nlink=" + std::to_string(a->nlink) +
             " uid=" + std::to_string(a->uid) + " size=" + std::to_string(a->size) +
             " blocks=" + std::to_string(a->blocks) + " mtime=" + std::to_string(a->mtime.seconds) +
             " ctime=" + std::to_string(a->ctime.seconds) + " rdev=" + std::to_string(a->rdev);
    if (S_ISLNK(a->mode)) text_ += " -> " + engine_.read_symlink(id).value();
    if (S_ISREG(a->mode)) describe_extents(id);
    const auto names = engine_.list_xattr(id);
    for (const auto& name : names.value()) {
      text_ += " " + name + "=" + readable(engine_.get_xattr(id, name).value());
    }
    text_ += "\n";
  }

  void describe_extents(InodeId id) {
    const uint64_t blocks = div_round_up(engine_.attributes(id).value().size, kBlockSize);
    const auto pieces = engine_.map(id, FileBlock{0}, std::max<uint64_t>(blocks, 64));
    for (const Piece& piece : pieces.value()) {
      if (piece.hole) continue;
      text_ += " [" + std::to_string(piece.first.value) + "+" + std::to_string(piece.length) + "@" +
               std::to_string(piece.block.value) + (piece.unwritten ? " unwritten]" : "]");
    }
  }

  Engine& engine_;
  std::string text_;
};

std::unique_ptr<Engine> open_engine(pmem::Region& region, Clock& clock) {
  const auto super = load_superblock(region, false);
  if (!super.ok()) return nullptr;
  auto engine = Engine::open(region, *super, clock, {false, false});
  return engine.ok() ? std::move(*engine) : nullptr;
}

void examine(pmem::Region& region, std::string& problems) {
  const auto report = check(region, *load_superblock(region, false), {});
  if (!report.ok()) problems += report.error().message() + "\n";
  if (report.ok())
    for (const auto& problem : report->problems) problems += problem.text + "\n";
}

// Frees orphans, and leaves nothing to the journal.
void finish(Engine& engine, std::string& problems) {
  for (const InodeId orphan : engine.leftover_orphans()) {
    const auto freed = engine.free_orphan(orphan);
    if (!freed.ok()) problems += "orphan: " + freed.error().message() + "\n";
  }
  engine.journal().checkpoint();
}

// Mounts the words as a new process would.
Recovered mount(pmem::Region& region) {
  TickingClock clock(1'000'000);
  Recovered found;
  {
    const auto engine = open_engine(region, clock);
    if (engine == nullptr) return {"does not open", ""};
    found.tree = tree_text(*engine);
    finish(*engine, found.problems);
  }
  examine(region, found.problems);
  return found;
}

Recovered mount_alone(pmem::Region& both, size_t which) {
  Side side(both, which);
  return mount(side);
}

}  // namespace

std::string tree_text(Engine& engine) {
  return TreeText(engine).render();
}

Result<void> write_blocks(Engine& engine, InodeId id, uint64_t first, uint64_t count) {
  SFS_ASSIGN(const auto pieces, engine.map(id, FileBlock{first}, count));
  WriteResult result;
  std::vector<Piece> overwritten;
  for (const Piece& piece : pieces) {
    BlockNo at = piece.block;
    if (piece.hole) {
      SFS_ASSIGN(const auto run, engine.blocks().reserve(piece.length, kDefaultPStream, {}));
      SFS_ASSERT(run.count == piece.length);
      at = run.first;
      result.added.push_back({piece.first, at, piece.length, {}});
    } else if (piece.unwritten) {
      result.added.push_back({piece.first, at, piece.length, {}});
    } else {
      overwritten.push_back(piece);
    }
    for (uint64_t i = 0; i < piece.length; ++i) {
      result.checksums.push_back({BlockNo{at.value + i}, static_cast<uint32_t>(first + i + 77)});
    }
  }
  SFS_TRY(engine.begin_overwrite(id, overwritten));
  result.end_offset = (first + count) * kBlockSize;
  result.epoch = 1;
  SFS_ASSIGN(SlotRoom room, engine.slot_room(2 * result.added.size() + 1));
  return engine.finish_write(id, result, room);
}

Result<void> preallocate(Engine& engine, InodeId id, uint64_t first, uint64_t count) {
  SFS_ASSIGN(const auto pieces, engine.map(id, FileBlock{first}, count));
  std::vector<WriteResult::NewPiece> added;
  for (const Piece& piece : pieces) {
    if (!piece.hole) continue;
    SFS_ASSIGN(const auto run, engine.blocks().reserve(piece.length, kDefaultPStream, {}));
    SFS_ASSERT(run.count == piece.length);
    added.push_back({piece.first, run.first, run.count, {}});
  }
  SFS_ASSIGN(SlotRoom room, engine.slot_room(added.size() + 1));
  return engine.preallocate(id, added, room);
}

EngineProver::EngineProver(Kept kept)
    : kept_(kept),
      region_(std::make_unique<pmem::RecordingRegion>(
          kept == Kept::kTwice ? 2 * kMetaBytes : kMetaBytes, pmem::MetaClass::kPersistent)) {
  FormatOptions options;
  options.data_blocks = kDataBlocks;
  options.random_seed = 7;
  options.mirror = kept == Kept::kTwice;
  const auto super = plan_format(kMetaBytes, pmem::MetaClass::kPersistent, options);
  SFS_ASSERT(super.ok());
  if (kept == Kept::kTwice) mirror_ = mirror(*region_);
  SFS_ASSERT(format(mirror_ ? *mirror_ : *region_, *super, Timestamp{1, 0}).ok());
  open();
}

EngineProver::EngineProver(const std::vector<uint64_t>& words, Kept kept)
    : kept_(kept), region_(std::make_unique<pmem::RecordingRegion>(words)) {
  if (kept == Kept::kTwice) mirror_ = mirror(*region_);
  open();
}

EngineProver::~EngineProver() = default;

void EngineProver::open() {
  engine_ = open_engine(mirror_ ? *mirror_ : *region_, clock_);
  SFS_ASSERT(engine_ != nullptr);
}

// The words are left as they are.
Recovered EngineProver::recover(std::vector<uint64_t>& words) const {
  pmem::ScratchRegion region(words);
  if (kept_ == Kept::kOnce) return mount(region);
  auto found = mount(*mirror(region));
  for (size_t which = 0; which < 2; ++which) {
    const auto left = mount_alone(region, which);
    if (left.tree == found.tree && left.problems.empty()) continue;
    found.problems +=
        "copy " + std::to_string(which) + " is left with\n" + left.problems + left.tree;
  }
  return found;
}

std::string EngineProver::judge(std::vector<uint64_t>& words, const Allowed& allowed,
                                std::string& tree) const {
  const auto wrong = [&](const Recovered& found, const std::string& who) {
    if (allowed.has(found.tree) && found.problems.empty()) return std::string();
    return who + "\n" + found.problems + "expected\n" + allowed.before + "found\n" + found.tree;
  };
  const Recovered found = recover(words);
  tree = found.tree;
  std::string said = wrong(found, "");
  for (size_t which = 0; kept_ == Kept::kTwice && which < 2; ++which) {
    pmem::ScratchRegion region(words);
    said += wrong(mount_alone(region, which), "\ncopy " + std::to_string(which) + " alone");
  }
  return said;
}

EngineProver::Outcome EngineProver::prove(const std::vector<Step>& steps, const Options& options) {
  region_->start_recording();
  std::vector<std::string> expected;
  Outcome outcome;
  const auto note = [&] {
    std::vector<uint64_t> now = region_->words();
    const Recovered found = recover(now);
    expected.push_back(found.tree);
    if (!found.problems.empty()) outcome.wrong.push_back("before any cut: " + found.problems);
  };
  note();
  for (const Step& step : steps) {
    step(*engine_);
    region_->mark();
    note();
  }
  if (!outcome.wrong.empty() || (options.go_on && !options.go_on())) return outcome;
  pmem::ExploreOptions explore = options.explore;
  if (kept_ == Kept::kTwice) explore.copy_bytes = kMetaBytes;
  size_t until_recovery = options.recovery_every;
  outcome.images = pmem::each_crash_image(
      region_->initial(), region_->events(), explore, [&](const pmem::CrashImage& image) {
        const bool last = image.marks + 1 >= expected.size();
        const Allowed allowed{expected[image.marks], last ? nullptr : &expected[image.marks + 1]};
        std::string tree;
        std::string wrong = judge(image.words, allowed, tree);
        if (!wrong.empty()) {
          outcome.wrong.push_back(image.description() + wrong);
        } else if (--until_recovery == 0) {
          until_recovery = options.recovery_every;
          prove_recovery(image, allowed, tree, outcome);
        }
        return outcome.wrong.size() < options.failures_max;
      });
  return outcome;
}

void EngineProver::prove_recovery(const pmem::CrashImage& image, const Allowed& allowed,
                                  const std::string& tree, Outcome& outcome) {
  pmem::RecordingRegion region(image.words);
  const auto twice = kept_ == Kept::kTwice ? mirror(region) : nullptr;
  TickingClock clock(1'000'000);
  {
    const auto engine = open_engine(twice ? *twice : region, clock);
    if (engine == nullptr) return;
    std::string ignored;  // judged already
    finish(*engine, ignored);
  }
  pmem::ExploreOptions few;
  few.exhaustive_up_to = 16;
  few.samples = 4;
  if (twice) few.copy_bytes = kMetaBytes;
  outcome.in_recovery += pmem::each_crash_image(
      region.initial(), region.events(), few, [&](const pmem::CrashImage& again) {
        std::string found;
        std::string wrong = judge(again.words, allowed, found);
        if (found != tree) wrong += "\nwithout the second cut it was\n" + tree;
        if (wrong.empty()) return true;
        outcome.wrong.push_back(image.description() + "; then in recovery, " + again.description() +
                                wrong);
        return false;
      });
}

}  // namespace streamfs::meta
