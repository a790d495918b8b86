// Freed units are not used again too early: a body written over words that an unfinished record
// still needs would undo that record at the next recovery. META is cut everywhere; every image is
// sound and shows the names of some moment between the last operation that returned and the next.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMetaBytes = 1536 * 1024;

class ReuseCrash : public ::testing::Test {
 protected:
  using Names = std::set<std::string>;

  void SetUp() override {
    FormatOptions options;
    options.data_blocks = 4096;
    options.random_seed = 3;
    const auto super = plan_format(kMetaBytes, pmem::MetaClass::kPersistent, options);
    ASSERT_TRUE(super.ok());
    ASSERT_TRUE(format(region_, *super, clock_.now()).ok());
    engine_ = open(region_);
    ASSERT_NE(engine_, nullptr);
  }

  std::unique_ptr<Engine> open(pmem::Region& region) {
    const auto super = load_superblock(region, false);
    if (!super) return nullptr;
    auto engine =
        Engine::open(region, *super, clock_, {.read_only = false, .start_background = false});
    return engine ? std::move(engine).value() : nullptr;
  }
  static Names names(Engine& engine) {
    Names names;
    EXPECT_TRUE(engine
                    .read_directory(engine.root(), 0,
                                    [&](const DirectoryEntry& entry) {
                                      names.emplace(entry.name);
                                      return true;
                                    })
                    .ok());
    for (const std::string& name : names)
      EXPECT_TRUE(engine.lookup(engine.root(), name).ok()) << name;
    return names;
  }
  void create(const std::string& name) {
    ASSERT_TRUE(engine_->create(engine_->root(), name, node(S_IFREG | 0600)).ok());
  }
  void remove(const std::string& name) {
    const auto gone = engine_->unlink(engine_->root(), name);
    ASSERT_TRUE(gone.ok());
    ASSERT_TRUE(engine_->forget(*gone, 1000000));
    ASSERT_TRUE(engine_->free_orphan(*gone).ok());
  }
  void expect_sound_at_every_cut(const std::vector<std::function<void()>>& steps) {
    region_.start_recording();
    std::vector<Names> moments{names(*engine_)};
    for (const auto& step : steps) {
      step();
      region_.mark();
      moments.push_back(names(*engine_));
    }
    pmem::ExploreOptions explore;
    explore.exhaustive_up_to = 64;
    explore.samples = 16;
    int wrong = 0;
    pmem::each_crash_image(region_.initial(), region_.events(), explore,
                           [&](const pmem::CrashImage& image) {
                             const bool good = sound(image, moments);
                             wrong += good ? 0 : 1;
                             return good;
                           });
    EXPECT_EQ(wrong, 0);
  }

  bool sound(const pmem::CrashImage& image, const std::vector<Names>& moments) {
    pmem::ScratchRegion region(image.words);
    {
      const auto engine = open(region);
      EXPECT_NE(engine, nullptr) << image.description();
      if (!engine) return false;
      const Names found = names(*engine);
      const bool next = image.marks + 1 < moments.size() && found == moments[image.marks + 1];
      EXPECT_TRUE(found == moments[image.marks] || next) << image.description();
      engine->journal().checkpoint();
    }
    const auto report = check(region, *load_superblock(region, false), {});
    EXPECT_TRUE(report.ok());
    if (!report) return false;
    for (const auto& problem : report->problems) {
      ADD_FAILURE() << problem.text << "\n" << image.description();
    }
    return report->sound() && !HasFailure();
  }

  ManualClock clock_;
  pmem::RecordingRegion region_{kMetaBytes, pmem::MetaClass::kPersistent};
  std::unique_ptr<Engine> engine_;
};

TEST_F(ReuseCrash, ADirectorySlotFreedAMomentAgo) {
  create("first");
  engine_->journal().checkpoint();
  expect_sound_at_every_cut({[&] { create("a"); }, [&] { remove("a"); }, [&] { create("b"); },
                             [&] { remove("b"); }, [&] { create("c"); }});
}

TEST_F(ReuseCrash, ADirectorySlotThatLedElsewhereAMomentAgo) {
  create("a");
  create("x");
  engine_->journal().checkpoint();
  expect_sound_at_every_cut(
      {[&] { ASSERT_TRUE(engine_->rename(engine_->root(), "x", engine_->root(), "a", 0).ok()); },
       [&] { remove("a"); }, [&] { create("b"); }, [&] { create("c"); }});
}

TEST_F(ReuseCrash, ADirectorySlotOfANewUnit) {
  expect_sound_at_every_cut({[&] { create("a"); }, [&] { remove("a"); }, [&] { create("b"); }});
}

TEST_F(ReuseCrash, AnInodeSlotFreedAMomentAgo) {
  for (int i = 0; i < 15; ++i) create("fill" + std::to_string(i));
  engine_->journal().checkpoint();
  expect_sound_at_every_cut({[&] { create("a"); }, [&] { remove("a"); },
                             [&] { create(std::string(100, 'b')); },
                             [&] { remove(std::string(100, 'b')); }, [&] { create("c"); }});
}

TEST_F(ReuseCrash, AUnitOfInodesThatBecomesADirectory) {
  constexpr int kFilesBefore = 600;
  const auto file = [](int i) { return "file" + std::to_string(i); };
  const auto directory = [&](int i) {
    const std::string name = "dir" + std::to_string(i);
    const auto made = engine_->create(engine_->root(), name, node(S_IFDIR | 0700));
    return made.ok() && engine_->create(made->id, "x", node(S_IFREG | 0600)).ok();
  };
  for (int i = 0; i < kFilesBefore; ++i) create(file(i));
  int directories = 0;
  while (directory(directories)) ++directories;
  for (int i = 0; i < 400; ++i) remove(file(i));
  engine_->journal().checkpoint();
  // Units that never held anything are handed out first.
  for (int i = 0; i < 14; ++i) ASSERT_TRUE(directory(++directories));
  constexpr int kLast = 420;  // all others of its unit go before it
  for (int i = 400; i < 440; ++i)
    if (i != kLast) remove(file(i));
  // Slots enough elsewhere, or the unit would stay.
  for (int i = 440; i < kFilesBefore; i += 2) remove(file(i));
  engine_->journal().checkpoint();
  const uint64_t units = engine_->space().free_units;
  expect_sound_at_every_cut(
      {[&] { remove(file(kLast)); }, [&] { EXPECT_EQ(engine_->space().free_units, units + 1); },
       [&] { engine_->journal().checkpoint(); }, [&] { ASSERT_TRUE(directory(++directories)); },
       [&] { ASSERT_TRUE(directory(++directories)); }});
}

}  // namespace
}  // namespace streamfs::meta
