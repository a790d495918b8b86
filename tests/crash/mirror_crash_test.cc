// META kept twice: the power goes at any point, and each copy keeps its own choice of what was not
// fenced. A mount of both finds the tree before or after the operation under way, with everything
// that returned, and so does a mount of either alone; a mount of both leaves either able to go on
// alone.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/make_copy.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"
#include "tests/crash/engine_prover.h"
#include "tests/crash/kept_twice.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kBytes = EngineProver::kMetaBytes;

// The younger superblock of the copies, as a mount chooses it.
Superblock superblock(pmem::Region& region) {
  Superblock found = load_superblock(region.copy(0), false).value();
  for (size_t copy = 1; copy < region.copies(); ++copy) {
    const Superblock other = load_superblock(region.copy(copy), false).value();
    if (other.generation > found.generation) found = other;
  }
  return found;
}

struct Found {
  std::string tree, problems;
};

// Opens, and frees orphans; `use` has the engine until it is killed.
Found find(pmem::Region& region, const std::function<void(Engine&)>& use) {
  TickingClock clock(1'000'000);
  auto engine = Engine::open(region, superblock(region), clock, {false, false});
  if (!engine.ok()) return {"does not open: " + engine.error().message(), ""};
  Found found{tree_text(**engine), ""};
  for (const InodeId orphan : (*engine)->leftover_orphans()) {
    if (!(*engine)->free_orphan(orphan).ok()) found.problems += "orphan\n";
  }
  use(**engine);
  return found;
}

Found find(pmem::Region& region) {
  Found found = find(region, [](Engine& e) { e.journal().checkpoint(); });
  const auto report = check(region, superblock(region), {});
  if (!report.ok()) found.problems += report.error().message() + "\n";
  if (report.ok())
    for (const auto& problem : report->problems) found.problems += problem.text + "\n";
  return found;
}

Found find_alone(pmem::Region& both, size_t which) {
  Side side(both, which);
  return find(side);
}

InodeId make(Engine& e, InodeId parent, const std::string& name, uint32_t mode,
             const std::string& target = "") {
  const auto made = e.create(parent, name, CreateRequest{mode, {}, 0, target, {}, false});
  EXPECT_TRUE(made.ok()) << made.error().message();
  return made.ok() ? made->id : InodeId{};
}

void write(Engine& e, InodeId id, uint64_t first, uint64_t count) {
  ASSERT_TRUE(write_blocks(e, id, first, count).ok());
  ASSERT_TRUE(e.commit_inode(id, 1).ok());
}

const Acl kList{7, 5, 4, 7, {{false, 12, 6}}};

// Uses what is free, where a cut may have left the copies different; the inode with what an
// uncommitted one may have had.
void reuse(Engine& e) {
  const InodeId listed = make(e, e.root(), "reuse-acl", S_IFREG | 0644);
  EXPECT_TRUE(e.set_xattr(listed, kAccessAclName, format_acl(kList), 0).ok());
  make(e, e.root(), "reuse-link", S_IFLNK | 0777, "where/" + std::string(60, 't'));
  const InodeId file = make(e, e.root(), "reuse-file", S_IFREG | 0644);
  for (uint64_t i = 0; i < 4; ++i) write(e, file, 2 * i, 1);
  EXPECT_TRUE(e.set_xattr(file, "user.small", std::string(30, 'v'), 0).ok());
  const InodeId folder = make(e, e.root(), "reuse-dir", S_IFDIR | 0755);
  EXPECT_TRUE(e.set_xattr(folder, "user.large", std::string(3000, 'v'), 0).ok());
  make(e, folder, "inside", S_IFREG | 0644);
}

class MirrorCrash : public testing::Test {
 protected:
  using Step = std::function<void(Engine&)>;

  void SetUp() override {
    FormatOptions options;
    options.data_blocks = EngineProver::kDataBlocks;
    options.random_seed = 7;
    options.mirror = true;
    const auto super = plan_format(kBytes, pmem::MetaClass::kPersistent, options);
    ASSERT_TRUE(super.ok());
    region_ = mirror(both_);
    ASSERT_TRUE(format(*region_, *super, Timestamp{1, 0}).ok());
    engine_ = Engine::open(*region_, superblock(*region_), clock_, {false, false}).value();
    Engine& e = *engine_;
    dir_ = make(e, e.root(), "dir", S_IFDIR | 0755);
    file_ = make(e, dir_, "file", S_IFREG | 0644);
    other_ = make(e, e.root(), "other", S_IFREG | 0600);
    write(e, file_, 0, 3);
    e.journal().checkpoint();
  }

  // Checks the tree that the words hold, by mounts of either copy before and after one of both.
  void examine(std::vector<uint64_t>& words, const std::vector<std::string>& allowed,
               const std::string& where) {
    const auto expect = [&](const Found& found, const char* who) {
      const bool known = std::ranges::find(allowed, found.tree) != allowed.end();
      EXPECT_TRUE(known && found.problems.empty())
          << where << "\n"
          << who << " finds " << found.problems << found.tree << "instead of\n"
          << allowed.front();
    };
    for (size_t alone = 0; alone < 2; ++alone) {
      pmem::ScratchRegion both(words);
      expect(find_alone(both, alone), alone == 0 ? "the first alone" : "the second alone");
    }
    pmem::ScratchRegion both(words);
    std::string left;
    const auto use = [&left](Engine& e) {
      reuse(e);
      left = tree_text(e);
    };
    expect(find(*mirror(both), use), "the mount of both");
    for (size_t alone = 0; alone < 2; ++alone) {
      const Found found = find_alone(both, alone);
      EXPECT_EQ(found.tree + found.problems, left) << where << "\nleft alone: " << alone;
    }
  }

  // The power goes again, after the mount of both was used: what it made is in either.
  void examine_next_cut(const std::vector<uint64_t>& words, const std::string& where) {
    pmem::RecordingRegion both(words);
    std::string left;
    find(*mirror(both), [&](Engine& e) {
      reuse(e);
      left = tree_text(e);
    });
    both.mark();
    pmem::ExploreOptions end;
    end.from_mark = 1;
    end.exhaustive_up_to = end.samples = 1;
    end.models = {pmem::StoreModel::kLinePrefix};
    bool first = true;
    pmem::each_crash_image(both.initial(), both.events(), end, [&](const pmem::CrashImage& image) {
      for (size_t alone = 0; alone < 2; ++alone) {
        pmem::ScratchRegion again(image.words);
        const Found found = find_alone(again, alone);
        EXPECT_EQ(found.tree + found.problems, left)
            << where << "\nthen " << image.description() << "\nleft alone: " << alone;
      }
      return std::exchange(first, false) && !HasFailure();  // none, all of what was not fenced
    });
  }

  // The power goes in the recovery, too.
  void examine_recovery(const std::vector<uint64_t>& words, const std::vector<std::string>& allowed,
                        const std::string& where) {
    pmem::RecordingRegion both(words);
    const Found found = find(*mirror(both));
    ASSERT_TRUE(found.problems.empty()) << where << found.problems;
    pmem::ExploreOptions few;
    few.exhaustive_up_to = 8;
    few.samples = 4;
    in_recovery_ += pmem::each_crash_image(
        both.initial(), both.events(), few, [&](const pmem::CrashImage& again) {
          examine(again.words, allowed, where + "; in recovery " + again.description());
          return !HasFailure();
        });
  }

  void prove(const std::vector<Step>& steps, uint64_t next_cut_every = 5) {
    both_.start_recording();
    std::vector<std::string> expected{tree_text(*engine_)};
    for (const Step& step : steps) {
      step(*engine_);
      both_.mark();
      expected.push_back(tree_text(*engine_));
    }
    pmem::ExploreOptions options;
    options.exhaustive_up_to = 24;
    options.samples = 16;
    uint64_t until_recovery = kRecoveryEvery, until_next_cut = next_cut_every;
    const uint64_t images = pmem::each_crash_image(
        both_.initial(), both_.events(), options, [&](const pmem::CrashImage& image) {
          std::vector<std::string> allowed{expected[image.marks]};
          if (image.marks + 1 < expected.size()) allowed.push_back(expected[image.marks + 1]);
          examine(image.words, allowed, image.description());
          if (--until_next_cut == 0) {
            until_next_cut = next_cut_every;
            examine_next_cut(image.words, image.description());
          }
          if (--until_recovery == 0) {
            until_recovery = kRecoveryEvery;
            examine_recovery(image.words, allowed, image.description());
          }
          return !HasFailure();
        });
    EXPECT_GT(images, steps.size());
    EXPECT_GT(in_recovery_, 0U);
    std::printf("%llu images, %llu in recovery\n", static_cast<unsigned long long>(images),
                static_cast<unsigned long long>(in_recovery_));
  }

  static constexpr uint64_t kRecoveryEvery = 97;
  TickingClock clock_{1000};
  pmem::RecordingRegion both_{2 * kBytes, pmem::MetaClass::kPersistent};
  std::unique_ptr<pmem::Region> region_;
  std::unique_ptr<Engine> engine_;
  InodeId dir_, file_, other_;
  uint64_t in_recovery_ = 0;
};

TEST_F(MirrorCrash, CreateThenSetAttributes) {
  InodeId id;
  prove({[&](Engine& e) { id = make(e, dir_, "new", S_IFREG | 0644); },
         [&](Engine& e) {
           AttributeChange change;
           change.mode = 0400;
           ASSERT_TRUE(e.set_attributes(id, change).ok());
         }});
}

TEST_F(MirrorCrash, CreateThenAppend) {
  InodeId id;
  prove({[&](Engine& e) { id = make(e, dir_, "new", S_IFREG | 0644); },
         [&](Engine& e) { write(e, id, 0, 1); }, [&](Engine& e) { write(e, id, 1, 2); }});
}

TEST_F(MirrorCrash, MkdirThenCreate) {
  InodeId id;
  prove({[&](Engine& e) { id = make(e, dir_, "sub", S_IFDIR | 0755); },
         [&](Engine& e) { make(e, id, "one", S_IFREG | 0644); }});
}

TEST_F(MirrorCrash, SymlinkAndAttributesOfWhichTheNextOwnerOfTheirPlaceSeesNothing) {
  prove({[&](Engine& e) { make(e, dir_, "link", S_IFLNK | 0777, "where/" + std::string(60, 't')); },
         [&](Engine& e) {
           ASSERT_TRUE(e.set_xattr(file_, "user.large", std::string(3000, 'v'), 0).ok());
         }});
}

TEST_F(MirrorCrash, CreateUnderAnACL) {
  ASSERT_TRUE(engine_->set_xattr(dir_, kDefaultAclName, format_acl(kList), 0).ok());
  prove({[&](Engine& e) { make(e, dir_, "new", S_IFREG | 0644); }});
}

TEST_F(MirrorCrash, RenameOverAFile) {
  prove({[&](Engine& e) { ASSERT_TRUE(e.rename(dir_, "file", e.root(), "other", 0).ok()); }});
}

TEST_F(MirrorCrash, UnlinkThenFree) {
  prove({[&](Engine& e) { ASSERT_TRUE(e.unlink(dir_, "file").ok()); },
         [&](Engine& e) {
           ASSERT_TRUE(e.forget(file_, 1));
           ASSERT_TRUE(e.free_orphan(file_).ok());
         }});
}

TEST_F(MirrorCrash, ACheckpointBetweenTwoChanges) {
  prove({[&](Engine& e) { make(e, dir_, "one", S_IFREG | 0644); },
         [](Engine& e) { e.journal().checkpoint(); },
         [&](Engine& e) { make(e, dir_, "two", S_IFREG | 0644); }},
        1);
}

TEST_F(MirrorCrash, OverwriteInPlace) {
  prove({[&](Engine& e) { write(e, file_, 1, 1); }, [&](Engine& e) { write(e, file_, 1, 1); }});
}

// The first copy fails, and files go on in the second. At every cut either nobody was told, and any
// copy will do, or the first is behind in what a mount looks at.
TEST_F(MirrorCrash, ACopyThatWasDroppedIsNotTakenForCurrent) {
  engine_.reset();
  bool fails = false;
  region_ = mirror(both_, &fails);
  engine_ = Engine::open(*region_, superblock(*region_), clock_, {false, false}).value();
  region_->on_copy_dropped(
      [this](pmem::Region&, const std::string&) { return engine_->attach_again(77); });
  both_.start_recording();
  std::vector<std::string> expected{tree_text(*engine_)};
  const auto step = [&](const Step& apply) {
    apply(*engine_);
    both_.mark();
    expected.push_back(tree_text(*engine_));
  };
  step([&](Engine& e) { make(e, dir_, "one", S_IFREG | 0644); });
  fails = true;
  step([&](Engine&) { ASSERT_TRUE(region_->sync().ok()); });
  constexpr size_t kDropped = 2;  // marks
  step([&](Engine& e) { make(e, dir_, "two", S_IFREG | 0644); });
  uint64_t in_step = 0, behind = 0;
  pmem::ExploreOptions options;
  options.exhaustive_up_to = 24;
  options.samples = 16;
  pmem::each_crash_image(
      both_.initial(), both_.events(), options, [&](const pmem::CrashImage& image) {
        std::vector<std::string> allowed{expected[image.marks]};
        if (image.marks + 1 < expected.size()) allowed.push_back(expected[image.marks + 1]);
        const auto attachments = [&](int which) {
          pmem::ScratchRegion both(image.words);
          return superblock(*std::make_unique<Side>(both, which)).attachments;
        };
        const bool older = attachments(0) < attachments(1);
        ++(older ? behind : in_step);
        EXPECT_TRUE(older || image.marks < kDropped) << image.description();
        pmem::ScratchRegion both(image.words);
        const auto second = std::make_unique<Side>(both, 1);
        EXPECT_TRUE(load_superblock(*second, true).ok());  // one may still have been on its way
        if (!older) {
          examine(image.words, allowed, image.description());
          return !HasFailure();
        }
        const Found found = find(*second);
        EXPECT_TRUE(std::ranges::find(allowed, found.tree) != allowed.end() &&
                    found.problems.empty())
            << image.description() << "\n"
            << found.problems << found.tree;
        return !HasFailure();
      });
  EXPECT_GT(in_step, 0U);
  EXPECT_GT(behind, 0U);
}

// A copy being made is unfinished at every cut, or as good as what it was made from.
TEST_F(MirrorCrash, MakingACopy) {
  make(*engine_, dir_, "new", S_IFREG | 0644);  // only the rings know yet
  const std::string tree = tree_text(*engine_);
  engine_.reset();
  std::vector<uint64_t> words = both_.words();
  words.resize(kBytes / kWordSize);
  const pmem::ScratchRegion from(words);
  const Superblock super = superblock(*region_);
  pmem::RecordingRegion to(words);
  Superblock stale = super;
  stale.attachments = super.attachments + 7;
  ASSERT_TRUE(format(to, stale, Timestamp{1, 0}).ok());
  to.start_recording();
  ASSERT_TRUE(make_copy(from, to, super).ok());
  uint64_t finished = 0, unfinished = 0;
  pmem::ExploreOptions options;
  options.exhaustive_up_to = 4;
  options.samples = 20;
  pmem::each_crash_image(to.initial(), to.events(), options, [&](const pmem::CrashImage& image) {
    pmem::ScratchRegion found(image.words);
    const auto of_copy = load_superblock(found, false);
    if (!of_copy.ok()) {
      EXPECT_TRUE(is_unfinished_copy(found)) << image.description();
      ++unfinished;
    } else if (of_copy->attachments == super.attachments) {
      // The first superblock may still be on its way: a check would complain of it.
      EXPECT_EQ(load_superblock(found, true)->attachments, super.attachments);
      const Found mounted = find(found);
      EXPECT_EQ(mounted.tree + mounted.problems, tree) << image.description();
      ++finished;
    } else {  // the copy is as it was at the start
      constexpr auto kFrom = static_cast<ptrdiff_t>(kSuperAreaSize / kWordSize);
      EXPECT_TRUE(
          std::equal(image.words.begin() + kFrom, image.words.end(), to.initial().begin() + kFrom))
          << image.description();
    }
    return !HasFailure();
  });
  EXPECT_GT(finished, 0U);
  EXPECT_GT(unfinished, 0U);
}

}  // namespace
}  // namespace streamfs::meta
