// The power goes anywhere in a growth and in what uses the new room after it: the filesystem has
// its old or its new size, whole, and all its files.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/growth.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

// META grows past 8 MiB, so that an intent log gets a segment.
constexpr uint64_t kSmallMeta = 7680 * 1024, kLargeMeta = 9216 * 1024;
constexpr uint64_t kSmallData = 4096, kLargeData = 80'000;

// GetParam(): META has an intent log.
class GrowthCrash : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    FormatOptions options;
    options.data_blocks = kSmallData;
    options.random_seed = 3;
    options.intent_log_bytes = GetParam() ? kRingSize : 0;
    const auto super = plan_format(kSmallMeta, pmem::MetaClass::kPersistent, options);
    ASSERT_TRUE(super.ok());
    ASSERT_TRUE(format(region_, *super, clock_.now()).ok());
    // The new space was never META's and may hold anything.
    for (uint64_t at = kSmallMeta; at < kLargeMeta; at += kUnitSize) {
      region_.store_word(at, ~uint64_t{0});
      region_.store_word(at + kUnitSize / 2, at);
    }
    engine_ = open(region_);
    ASSERT_NE(engine_, nullptr);
    add_file(*engine_, "before");
  }

  std::unique_ptr<Engine> open(pmem::Region& region) {
    const auto super = load_superblock(region, true);
    if (!super) return nullptr;
    auto engine =
        Engine::open(region, *super, clock_, {.read_only = false, .start_background = false});
    return engine ? std::move(engine).value() : nullptr;
  }
  static void add_file(Engine& engine, const std::string& name) {
    const auto made = engine.create(engine.root(), name, node(S_IFREG | 0600));
    ASSERT_TRUE(made.ok());
    const auto run = engine.blocks().reserve(100, kDefaultPStream, {});
    ASSERT_TRUE(run.ok());
    WriteResult written;
    written.added.push_back({FileBlock{0}, run->first, run->count, kDefaultVStream});
    written.checksums.push_back({run->first, 7});
    written.end_offset = run->count * kBlockSize;
    written.epoch = 1;
    ASSERT_TRUE(engine.finish_write(made->id, written).ok());
    ASSERT_TRUE(engine.commit_inode(made->id, 1).ok());
  }
  Result<void> grow(Engine& engine) {
    GrowthRequest request;
    request.data_blocks = kLargeData;
    request.meta_bytes = kLargeMeta;
    SFS_ASSIGN(const Superblock larger, plan_growth(engine.geometry().super(), request));
    return engine.grow(larger, [](const Superblock&) { return Result<void>(); });
  }
  // Puts an entry into the log's new segment, while a batch keeps the first one.
  void use_intent_log() {
    log_ = IntentLog::open(region_, engine_->geometry()).value();
    log_->start();
    const auto first = log_->begin(1), second = log_->begin(1);
    ASSERT_NE(second, nullptr);
    const InodeId id = engine_->lookup(engine_->root(), "before")->id;
    const BlockNo block = engine_->map(id, FileBlock{0}, 1)->front().block;
    std::vector<std::byte> content(kBlockSize);
    content[0] = std::byte{5};
    second->append({id, block, {}, content});
    region_.fence(second->flushed());
    second->keep();
  }
  void expect_intent_log(pmem::Region& region, const pmem::CrashImage& image) {
    const Geometry geometry = Geometry::from(*load_superblock(region, false)).value();
    const bool grown = geometry.meta_size() == kLargeMeta;
    EXPECT_EQ(geometry.intent_segments(), grown ? 2U : 1U);
    const auto log = IntentLog::open(region, geometry);
    ASSERT_TRUE(log.ok()) << log.error().message();
    const std::vector<IntentLog::Found> found = (*log)->found();
    EXPECT_TRUE(found.empty() || image.marks >= 2);
    if (image.marks < 3) return;
    const uint64_t second = geometry.intent_offset(1);
    EXPECT_TRUE(std::ranges::any_of(
        found, [&](const IntentLog::Found& each) { return each.place.offset >= second; }));
  }
  void expect_file(Engine& engine, const std::string& name) {
    const auto found = engine.lookup(engine.root(), name);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ(found->size, 100 * kBlockSize);
    EXPECT_TRUE(engine.verify(found->id).ok());
  }
  // Marks: 1 the growth has returned, 2 the file made after it, 3 entries in the intent log.
  void expect_sound(const pmem::CrashImage& image) {
    pmem::ScratchRegion region(image.words);
    if (GetParam()) expect_intent_log(region, image);
    {
      const auto engine = open(region);
      ASSERT_NE(engine, nullptr);
      const Superblock& super = engine->geometry().super();
      const bool grown = super.data_blocks == kLargeData && super.meta_size == kLargeMeta;
      const bool as_before = super.data_blocks == kSmallData && super.meta_size == kSmallMeta;
      EXPECT_TRUE(grown || (as_before && image.marks == 0));
      grown_ += grown ? 1 : 0;
      as_before_ += as_before ? 1 : 0;
      expect_file(*engine, "before");
      if (image.marks >= 2) expect_file(*engine, "after");
      if (as_before) {
        ASSERT_TRUE(grow(*engine).ok()) << "it can be done again";
      }
      add_file(*engine, "again");
      engine->journal().checkpoint();
    }
    const auto report = check(region, *load_superblock(region, false), {});
    ASSERT_TRUE(report.ok());
    for (const auto& problem : report->problems) ADD_FAILURE() << problem.text;
  }

  ManualClock clock_;
  pmem::RecordingRegion region_{kLargeMeta, pmem::MetaClass::kPersistent};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<IntentLog> log_;
  int grown_ = 0, as_before_ = 0;
};

TEST_P(GrowthCrash, LeavesTheOldSizeOrTheNewOne) {
  region_.start_recording();
  ASSERT_TRUE(grow(*engine_).ok());
  region_.mark();
  add_file(*engine_, "after");
  region_.mark();
  if (GetParam()) {
    use_intent_log();
    region_.mark();
  }
  pmem::ExploreOptions explore;
  explore.exhaustive_up_to = 32;
  explore.samples = 8;
  pmem::each_crash_image(region_.initial(), region_.events(), explore,
                         [&](const pmem::CrashImage& image) {
                           expect_sound(image);
                           if (HasFailure()) ADD_FAILURE() << image.description();
                           return !HasFailure();
                         });
  EXPECT_GT(as_before_, 0);
  EXPECT_GT(grown_, 0);
}

INSTANTIATE_TEST_SUITE_P(All, GrowthCrash, testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "WithAnIntentLog" : "Alone";
});

}  // namespace
}  // namespace streamfs::meta
