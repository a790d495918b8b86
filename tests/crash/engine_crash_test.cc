// The metadata engine's promise, broken at every point of every operation: after any cut the file
// tree is exactly what it was before the operation or after it, whatever returned is there, and no
// invariant is hurt.
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMetaSize = 1536 * 1024;
constexpr uint64_t kDataBlocks = 8192;

class FixedClock final : public Clock {
 public:
  Timestamp now() override { return {1000 + ticks_++, 5}; }
  uint64_t monotonic_ms() override { return 0; }

 private:
  int64_t ticks_ = 0;
};

// The tree as text: names, attributes, targets, xattrs, extents. Two equal texts are equal trees.
class TreeText {
 public:
  explicit TreeText(Engine& engine) : engine_(engine) {}
  std::string render() {
    walk(engine_.root(), "");
    return text_;
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
    const auto pieces = engine_.map(id, FileBlock{0}, 64);
    for (const Piece& piece : pieces.value()) {
      if (piece.hole) continue;
      text_ += " [" + std::to_string(piece.first.value) + "+" + std::to_string(piece.length) + "@" +
               std::to_string(piece.block.value) + "]";
    }
  }

  Engine& engine_;
  std::string text_;
};

class EngineCrash : public testing::Test {
 protected:
  using Step = std::function<void(Engine&)>;

  void SetUp() override {
    FormatOptions options;
    options.data_blocks = kDataBlocks;
    options.random_seed = 7;
    const auto super = plan_format(kMetaSize, pmem::MetaClass::kPersistent, options);
    ASSERT_TRUE(super.ok()) << super.error().message();
    ASSERT_TRUE(format(region_, *super, Timestamp{1, 0}).ok());
    engine_ = open(region_);
    ASSERT_NE(engine_, nullptr);
    Engine& e = *engine_;
    dir_ = make(e, e.root(), "dir", S_IFDIR | 0755);
    empty_ = make(e, e.root(), "empty", S_IFDIR | 0755);
    file_ = make(e, dir_, "file", S_IFREG | 0644);
    other_ = make(e, e.root(), "other", S_IFREG | 0600);
    write(e, file_, 0, 3);
    e.journal().checkpoint();
  }

  static std::unique_ptr<Engine> open(pmem::Region& region) {
    static FixedClock clock;
    const auto super = load_superblock(region, false);
    if (!super.ok()) return nullptr;
    auto engine = Engine::open(region, *super, clock, {false, false});
    return engine.ok() ? std::move(*engine) : nullptr;
  }

  static InodeId make(Engine& e, InodeId parent, std::string_view name, uint32_t mode) {
    const auto made = e.create(parent, name, CreateRequest{mode, {}, 0, "", {}, false});
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made.ok() ? made->id : InodeId{};
  }

  // Finishes and commits a write of `count` blocks at `first`, new or over what is there.
  static void write(Engine& e, InodeId id, uint64_t first, uint64_t count, bool commit = true) {
    const auto pieces = e.map(id, FileBlock{first}, count);
    ASSERT_TRUE(pieces.ok());
    WriteResult result;
    std::vector<Piece> overwritten;
    for (const Piece& piece : *pieces) {
      BlockNo at = piece.block;
      if (piece.hole) {
        const auto run = e.blocks().reserve(piece.length, kDefaultPStream, std::nullopt);
        ASSERT_TRUE(run.ok() && run->count == piece.length);
        at = run->first;
        result.added.push_back({piece.first, at, piece.length, {}});
      } else {
        overwritten.push_back(piece);
      }
      for (uint64_t i = 0; i < piece.length; ++i) {
        result.checksums.push_back({BlockNo{at.value + i}, static_cast<uint32_t>(first + i + 77)});
      }
    }
    ASSERT_TRUE(e.begin_overwrite(id, overwritten).ok());
    result.end_offset = (first + count) * kBlockSize;
    result.epoch = 1;
    ASSERT_TRUE(e.finish_write(id, result).ok());
    if (commit) {
      ASSERT_TRUE(e.commit_inode(id, 1).ok());
    }
  }

  static std::string recovered_text(const std::vector<uint64_t>& words, std::string& problems) {
    pmem::RecordingRegion region(words);
    std::string text;
    {
      const auto engine = open(region);
      if (engine == nullptr) return "does not open";
      text = TreeText(*engine).render();
      for (const InodeId orphan : engine->leftover_orphans()) {
        const auto freed = engine->free_orphan(orphan);
        if (!freed.ok()) problems += "orphan: " + freed.error().message() + "\n";
      }
      engine->journal().checkpoint();
    }
    const auto report = check(region, *load_superblock(region, false), {});
    if (!report.ok()) {
      problems += report.error().message() + "\n";
    } else {
      for (const auto& problem : report->problems) problems += problem.text + "\n";
    }
    return text;
  }

  void expect_whole_or_nothing(const std::vector<Step>& steps) {
    region_.start_recording();
    std::string none;
    std::vector<std::string> expected{recovered_text(region_.words(), none)};
    for (const Step& step : steps) {
      step(*engine_);
      region_.mark();
      expected.push_back(recovered_text(region_.words(), none));
    }
    ASSERT_EQ(none, "") << "broken before any cut";
    uint64_t wrong = 0;
    const uint64_t images = pmem::each_crash_image(
        region_.initial(), region_.events(), explore_, [&](const pmem::CrashImage& image) {
          std::string problems;
          const std::string found = recovered_text(image.words, problems);
          const bool next = image.marks + 1 < expected.size() && found == expected[image.marks + 1];
          if ((found != expected[image.marks] && !next) || !problems.empty()) {
            ++wrong;
            ADD_FAILURE() << image.description << "\n"
                          << problems << "expected\n"
                          << expected[image.marks] << "found\n"
                          << found;
          }
          return wrong < 2;
        });
    EXPECT_GT(images, steps.size());
    RecordProperty("images", static_cast<int>(images));
    std::printf("%s: %llu crash images\n",
                testing::UnitTest::GetInstance()->current_test_info()->name(),
                static_cast<unsigned long long>(images));
  }

  Step creating(std::string name, uint32_t mode, std::string target = "") {
    return [this, name, mode, target](Engine& e) {
      ASSERT_TRUE(e.create(dir_, name, CreateRequest{mode, {}, 0, target, {}, false}).ok());
    };
  }
  Step renaming(InodeId from, std::string name, InodeId to, std::string new_name,
                uint32_t flags = 0) {
    return [=](Engine& e) {
      const auto done = e.rename(from, name, to, new_name, flags);
      ASSERT_TRUE(done.ok()) << done.error().message();
    };
  }
  Step chmod_of(InodeId id, uint32_t mode) {
    return [=](Engine& e) {
      AttributeChange change;
      change.mode = mode;
      ASSERT_TRUE(e.set_attributes(id, change).ok());
    };
  }
  Step writing(InodeId id, uint64_t first, uint64_t count) {
    return [=](Engine& e) { write(e, id, first, count); };
  }
  Step checkpointing() {
    return [](Engine& e) { e.journal().checkpoint(); };
  }
  Step xattr(InodeId id, std::string name, std::string value) {
    return [=](Engine& e) { ASSERT_TRUE(e.set_xattr(id, name, value, 0).ok()); };
  }

  pmem::ExploreOptions explore_{
      {pmem::StoreModel::kLinePrefix, pmem::StoreModel::kAnyWord}, 256, 48, 1};
  pmem::RecordingRegion region_{kMetaSize, pmem::MetaClass::kPersistent};
  std::unique_ptr<Engine> engine_;
  InodeId dir_, empty_, file_, other_;
};

TEST_F(EngineCrash, Create) {
  expect_whole_or_nothing({creating("new", S_IFREG | 0644)});
}
TEST_F(EngineCrash, CreateWithALongName) {
  expect_whole_or_nothing({creating(std::string(200, 'n'), S_IFREG | 0644)});
}
TEST_F(EngineCrash, Mkdir) {
  expect_whole_or_nothing({creating("sub", S_IFDIR | 0755)});
}
TEST_F(EngineCrash, Mknod) {
  expect_whole_or_nothing({creating("fifo", S_IFIFO | 0644)});
}
TEST_F(EngineCrash, Symlink) {
  expect_whole_or_nothing({creating("link", S_IFLNK | 0777, "../target")});
}
TEST_F(EngineCrash, SymlinkWithALongTarget) {
  expect_whole_or_nothing({creating("link", S_IFLNK | 0777, std::string(1000, 't'))});
}
TEST_F(EngineCrash, Link) {
  expect_whole_or_nothing(
      {[this](Engine& e) { ASSERT_TRUE(e.link(file_, e.root(), "second").ok()); }});
}
TEST_F(EngineCrash, Unlink) {
  expect_whole_or_nothing({[this](Engine& e) { ASSERT_TRUE(e.unlink(dir_, "file").ok()); }});
}
TEST_F(EngineCrash, UnlinkThenFree) {
  expect_whole_or_nothing({[this](Engine& e) { ASSERT_TRUE(e.unlink(dir_, "file").ok()); },
                           [this](Engine& e) {
                             ASSERT_TRUE(e.forget(file_, 1));
                             ASSERT_TRUE(e.free_orphan(file_).ok());
                           },
                           checkpointing(), creating("again", S_IFREG | 0644)});
}
TEST_F(EngineCrash, Rmdir) {
  expect_whole_or_nothing({[](Engine& e) { ASSERT_TRUE(e.rmdir(e.root(), "empty").ok()); }});
}
TEST_F(EngineCrash, Rename) {
  expect_whole_or_nothing({renaming(dir_, "file", dir_, "moved")});
}
TEST_F(EngineCrash, RenameIntoAnotherDirectory) {
  expect_whole_or_nothing({renaming(dir_, "file", empty_, "moved")});
}
TEST_F(EngineCrash, RenameOverAFileAlwaysLeavesTheName) {
  expect_whole_or_nothing({renaming(dir_, "file", engine_->root(), "other")});
}
TEST_F(EngineCrash, RenameOfADirectory) {
  expect_whole_or_nothing({renaming(engine_->root(), "dir", empty_, "sub")});
}
TEST_F(EngineCrash, RenameOverAnEmptyDirectory) {
  expect_whole_or_nothing({renaming(engine_->root(), "dir", engine_->root(), "empty")});
}
TEST_F(EngineCrash, RenameNoReplace) {
  expect_whole_or_nothing({renaming(dir_, "file", empty_, "moved", RENAME_NOREPLACE)});
}
TEST_F(EngineCrash, RenameExchange) {
  expect_whole_or_nothing({renaming(dir_, "file", engine_->root(), "other", RENAME_EXCHANGE)});
}
TEST_F(EngineCrash, SetAttributes) {
  expect_whole_or_nothing({chmod_of(file_, 0400)});
}
TEST_F(EngineCrash, SetXattrReplaceAndRemove) {
  expect_whole_or_nothing({xattr(file_, "user.a", "one"), xattr(file_, "user.a", "two"),
                           xattr(file_, "user.b", std::string(5000, 'x')), [this](Engine& e) {
                             ASSERT_TRUE(e.remove_xattr(file_, "user.a").ok());
                           }});
}
TEST_F(EngineCrash, WriteNewBlocks) {
  expect_whole_or_nothing({writing(other_, 0, 4)});
}
TEST_F(EngineCrash, WriteManyExtents) {
  expect_whole_or_nothing({writing(other_, 0, 1), writing(other_, 4, 1), writing(other_, 8, 1),
                           writing(other_, 12, 1)});
}
TEST_F(EngineCrash, OverwriteInPlace) {
  expect_whole_or_nothing({writing(file_, 1, 1)});
}
TEST_F(EngineCrash, Truncate) {
  expect_whole_or_nothing({[this](Engine& e) {
    ASSERT_TRUE(e.set_size(file_, kBlockSize).ok());
    ASSERT_TRUE(e.commit_inode(file_, 1).ok());
  }});
}
TEST_F(EngineCrash, TruncateThenWriteIsNeverEmpty) {
  expect_whole_or_nothing({[this](Engine& e) {
    ASSERT_TRUE(e.set_size(file_, 0).ok());
    write(e, file_, 0, 2, false);
    ASSERT_TRUE(e.commit_inode(file_, 1).ok());
  }});
}
TEST_F(EngineCrash, PunchAHole) {
  expect_whole_or_nothing({[this](Engine& e) {
    ASSERT_TRUE(e.remove_range(file_, FileBlock{1}, 1).ok());
    ASSERT_TRUE(e.commit_inode(file_, 1).ok());
  }});
}

// The checkpointer never runs here: everything is told by the rings alone.
TEST_F(EngineCrash, CreateThenSetAttributesLosesNothing) {
  InodeId id;
  expect_whole_or_nothing({[&](Engine& e) { id = make(e, dir_, "new", S_IFREG | 0644); },
                           [&](Engine& e) { chmod_of(id, 0400)(e); },
                           [&](Engine& e) { chmod_of(id, 0440)(e); }});
}
TEST_F(EngineCrash, CreateThenAppendLosesNothing) {
  InodeId id;
  expect_whole_or_nothing({[&](Engine& e) { id = make(e, dir_, "new", S_IFREG | 0644); },
                           [&](Engine& e) { write(e, id, 0, 1); },
                           [&](Engine& e) { write(e, id, 1, 2); }});
}
TEST_F(EngineCrash, MkdirThenCreateLosesNothing) {
  InodeId id;
  expect_whole_or_nothing({[&](Engine& e) { id = make(e, dir_, "sub", S_IFDIR | 0755); },
                           [&](Engine& e) { make(e, id, "one", S_IFREG | 0644); },
                           [&](Engine& e) { make(e, id, "two", S_IFDIR | 0755); }});
}

}  // namespace
}  // namespace streamfs::meta
