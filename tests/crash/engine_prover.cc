#include "tests/crash/engine_prover.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

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
      text_ += " " + name + "=" + engine_.get_xattr(id, name).value();
    }
    text_ += "\n";
  }

  void describe_extents(InodeId id) {
    const uint64_t blocks = div_round_up(engine_.attributes(id).value().size, kBlockSize);
    const auto pieces = engine_.map(id, FileBlock{0}, std::max<uint64_t>(blocks, 64));
    for (const Piece& piece : pieces.value()) {
      if (piece.hole) continue;
      text_ += " [" + std::to_string(piece.first.value) + "+" + std::to_string(piece.length) + "@" +
               std::to_string(piece.block.value) + "]";
    }
  }

  Engine& engine_;
  std::string text_;
};

std::unique_ptr<Engine> open_engine(pmem::Region& region, Clock& clock, bool read_only = false) {
  const auto super = load_superblock(region, false);
  if (!super.ok()) return nullptr;
  auto engine = Engine::open(region, *super, clock, {read_only, false});
  return engine.ok() ? std::move(*engine) : nullptr;
}

struct Recovered {
  std::string tree;
  std::string problems;
};

void examine(pmem::Region& region, std::string& problems) {
  const auto report = check(region, *load_superblock(region, false), {});
  if (!report.ok()) problems += report.error().message() + "\n";
  if (report.ok())
    for (const auto& problem : report->problems) problems += problem.text + "\n";
}

// What a mount finds in these words, which are left as they are.
Recovered recover(std::vector<uint64_t>& words) {
  pmem::ScratchRegion region(words);
  TickingClock clock(1'000'000);
  Recovered found;
  {
    const auto engine = open_engine(region, clock);
    if (engine == nullptr) return {"does not open", ""};
    found.tree = tree_text(*engine);
    for (const InodeId orphan : engine->leftover_orphans()) {
      const auto freed = engine->free_orphan(orphan);
      if (!freed.ok()) found.problems += "orphan: " + freed.error().message() + "\n";
    }
    engine->journal().checkpoint();
  }
  examine(region, found.problems);
  return found;
}

// The same, of a mount that changes nothing but what the journal says.
Recovered look(std::vector<uint64_t>& words) {
  pmem::ScratchRegion region(words);
  TickingClock clock(1'000'000);
  Recovered found;
  const auto engine = open_engine(region, clock, true);
  if (engine == nullptr) return {"does not open", ""};
  found.tree = tree_text(*engine);
  examine(region, found.problems);
  return found;
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
  return engine.finish_write(id, result);
}

EngineProver::EngineProver()
    : region_(std::make_unique<pmem::RecordingRegion>(kMetaBytes, pmem::MetaClass::kPersistent)) {
  FormatOptions options;
  options.data_blocks = kDataBlocks;
  options.random_seed = 7;
  const auto super = plan_format(kMetaBytes, pmem::MetaClass::kPersistent, options);
  SFS_ASSERT(super.ok());
  SFS_ASSERT(format(*region_, *super, Timestamp{1, 0}).ok());
  open();
}

EngineProver::EngineProver(const std::vector<uint64_t>& words)
    : region_(std::make_unique<pmem::RecordingRegion>(words)) {
  open();
}

EngineProver::~EngineProver() = default;

void EngineProver::open() {
  engine_ = open_engine(*region_, clock_);
  SFS_ASSERT(engine_ != nullptr);
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
  size_t until_recovery = options.recovery_every;
  outcome.images = pmem::each_crash_image(
      region_->initial(), region_->events(), options.explore, [&](const pmem::CrashImage& image) {
        Recovered found = recover(image.words);
        if (options.as_found) {
          const Recovered seen = look(image.words);
          if (seen.tree != found.tree) found.problems += "only read, it is\n" + seen.tree;
          found.problems += seen.problems;
        }
        const bool next =
            image.marks + 1 < expected.size() && found.tree == expected[image.marks + 1];
        if ((found.tree != expected[image.marks] && !next) || !found.problems.empty()) {
          outcome.wrong.push_back(image.description() + "\n" + found.problems + "expected\n" +
                                  expected[image.marks] + "found\n" + found.tree);
        } else if (--until_recovery == 0) {
          until_recovery = options.recovery_every;
          prove_recovery(image, found.tree, outcome);
        }
        return outcome.wrong.size() < options.failures_max;
      });
  return outcome;
}

void EngineProver::prove_recovery(const pmem::CrashImage& image, const std::string& tree,
                                  Outcome& outcome) {
  pmem::RecordingRegion region(image.words);
  TickingClock clock(1'000'000);
  {
    const auto engine = open_engine(region, clock);
    if (engine == nullptr) return;
    for (const InodeId orphan : engine->leftover_orphans()) (void)engine->free_orphan(orphan);
    engine->journal().checkpoint();
  }
  pmem::ExploreOptions few;
  few.exhaustive_up_to = 16;
  few.samples = 4;
  outcome.in_recovery += pmem::each_crash_image(
      region.initial(), region.events(), few, [&](const pmem::CrashImage& again) {
        const Recovered found = recover(again.words);
        if (found.tree == tree && found.problems.empty()) return true;
        outcome.wrong.push_back(image.description() + "; then in recovery, " + again.description() +
                                "\n" + found.problems + "expected\n" + tree + "found\n" +
                                found.tree);
        return false;
      });
}

}  // namespace streamfs::meta
