// The journal's promise, broken at every point: after any cut each transaction happened whole or
// not at all, and every one whose commit() had returned happened.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/types.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMetaSize = 1024 * 1024;
constexpr uint64_t kObjects = 6;
constexpr uint64_t kObjectWords = 16;

// A format()ted META whose heap from the fourth unit on is a playground of 256-byte objects.
class JournalCrash : public testing::Test {
 protected:
  void SetUp() override {
    FormatOptions options;
    options.data_blocks = 4096;
    options.random_seed = 7;
    auto super = plan_format(kMetaSize, pmem::MetaClass::kPersistent, options);
    ASSERT_TRUE(super.ok()) << super.error().message();
    ASSERT_TRUE(format(region_, *super, Timestamp{1, 0}).ok());
    auto geometry = Geometry::from(*load_superblock(region_, false));
    ASSERT_TRUE(geometry.ok());
    geometry_ = *geometry;
    journal_ = std::make_unique<Journal>(region_, geometry_);
  }

  uint64_t object(uint64_t i) const { return geometry_.unit_offset(4) + i * kCellSize; }

  static std::array<uint64_t, kObjectWords - 1> body_of(uint64_t tag) {
    std::array<uint64_t, kObjectWords - 1> words{};
    for (size_t i = 0; i < words.size(); ++i) words[i] = tag * 1000 + i;
    return words;
  }

  void create(uint64_t i, uint64_t tag) {
    Transaction tx(region_);
    tx.body(object(i) + kWordSize, body_of(tag));
    tx.patch(object(i), tag);
    ASSERT_TRUE(journal_->commit(tx).ok());
  }
  void change(uint64_t i, uint64_t word, uint64_t value) {
    Transaction tx(region_);
    tx.patch(object(i) + word * kWordSize, value);
    ASSERT_TRUE(journal_->commit(tx).ok());
  }
  void remove(uint64_t i) { change(i, 0, 0); }
  void run(uint64_t first, uint64_t count, RunKind kind) {
    Transaction tx(region_);
    tx.run(BlockNo{first}, count, kind);
    ASSERT_TRUE(journal_->commit(tx).ok());
  }

  // The words that count: all of used objects, the first of free ones, and the bitmaps.
  using State = std::vector<uint64_t>;
  State state_of(const pmem::Region& region) const {
    State state;
    for (uint64_t i = 0; i < kObjects; ++i) {
      const bool used = region.load(object(i)) != 0;
      for (uint64_t w = 0; w < kObjectWords; ++w) {
        state.push_back(used ? region.load(object(i) + w * kWordSize) : 0);
      }
    }
    for (const RegionKind kind : {RegionKind::kBlockBitmap, RegionKind::kUntrimmed}) {
      for (uint64_t w = 0; w < 64; ++w)
        state.push_back(region.load(geometry_.bitmap_word(kind, w)));
    }
    return state;
  }

  // Runs the steps under the recorder, then recovers from every image and compares.
  void expect_whole_or_nothing(const std::vector<std::function<void()>>& steps) {
    region_.start_recording();
    std::vector<State> states{state_of(region_)};
    for (const auto& step : steps) {
      step();
      region_.mark();
      states.push_back(state_of(region_));
    }
    uint64_t wrong = 0;
    const uint64_t images = pmem::each_crash_image(
        region_.initial(), region_.events(), {}, [&](const pmem::CrashImage& image) {
          wrong += recovers_to_one_of(image, states) ? 0 : 1;
          return wrong < 3;
        });
    EXPECT_EQ(wrong, 0U);
    EXPECT_GT(images, steps.size());
    RecordProperty("images", static_cast<int>(images));
  }

  bool recovers_to_one_of(const pmem::CrashImage& image, const std::vector<State>& states) {
    pmem::RecordingRegion after(image.words);
    if (!same(recover(after), image, states)) return false;
    // The same holds if the power goes again while recovering.
    bool ok = true;
    pmem::ExploreOptions few;
    few.exhaustive_up_to = 4;
    few.samples = 1;
    pmem::each_crash_image(
        after.initial(), after.events(), few, [&](const pmem::CrashImage& again) {
          pmem::ScratchRegion twice(again.words);
          ok = same(recover(twice),
                    {again.words, image.marks,
                     [&] { return image.description() + "; then " + again.description(); }},
                    states);
          return ok;
        });
    return ok;
  }

  State recover(pmem::Region& region) {
    const auto recovered = recover_journal(region, geometry_);
    return recovered.ok() ? state_of(region) : State{};
  }

  static bool same(const State& found, const pmem::CrashImage& image,
                   const std::vector<State>& states) {
    if (found == states[image.marks]) return true;
    if (image.marks + 1 < states.size() && found == states[image.marks + 1]) return true;
    ADD_FAILURE() << image.description();
    return false;
  }

  pmem::RecordingRegion region_{kMetaSize, pmem::MetaClass::kPersistent};
  Geometry geometry_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(JournalCrash, CreateIsWholeOrNothing) {
  expect_whole_or_nothing({[&] { create(0, 5); }, [&] { create(1, 6); }});
}

TEST_F(JournalCrash, ChangingAYoungBodyKeepsItsCreation) {
  expect_whole_or_nothing(
      {[&] { create(0, 5); }, [&] { change(0, 3, 77); }, [&] { change(0, 9, 78); }});
}

TEST_F(JournalCrash, ACreatedObjectSurvivesChangesToItsNeighbour) {
  expect_whole_or_nothing({[&] { create(0, 5); }, [&] { create(1, 6); }, [&] { change(0, 2, 1); },
                           [&] { change(1, 2, 2); }, [&] { remove(0); }});
}

TEST_F(JournalCrash, CheckpointChangesNothing) {
  expect_whole_or_nothing({[&] { create(0, 5); }, [&] { change(0, 2, 9); },
                           [&] { journal_->checkpoint(); }, [&] { change(0, 2, 10); },
                           [&] { journal_->checkpoint(); }, [&] { remove(0); }});
}

TEST_F(JournalCrash, AReusedSlotNeverMeetsItsOldChanges) {
  expect_whole_or_nothing({[&] { create(0, 5); }, [&] { change(0, 4, 44); }, [&] { remove(0); },
                           [&] { journal_->checkpoint(); }, [&] { create(0, 8); },
                           [&] { change(1, 4, 0); }});
}

TEST_F(JournalCrash, RunsOfBlocksAreWholeOrNothing) {
  expect_whole_or_nothing({[&] { run(60, 200, RunKind::kAllocate); },
                           [&] { run(100, 70, RunKind::kFree); }, [&] { journal_->checkpoint(); },
                           [&] { run(100, 70, RunKind::kTrimmed); },
                           [&] { run(120, 10, RunKind::kAllocate); }});
}

TEST_F(JournalCrash, ARingThatWrapsForgetsNothing) {
  // Enough commits to lap the ring: the last ones overwrite records whose effect must be home.
  const uint64_t laps = 2 * kRingSize / kLineSize;
  for (uint64_t i = 0; i < laps - 3; ++i) change(2, 5, i);
  create(0, 5);
  expect_whole_or_nothing({[&] { change(0, 2, 1); }, [&] { change(0, 2, 2); },
                           [&] { change(0, 2, 3); }, [&] { create(1, 3); },
                           [&] { change(0, 2, 4); }});
}

TEST_F(JournalCrash, ASlotReusedAfterRecoveryNeverMeetsItsOldChanges) {
  create(0, 5);
  change(0, 4, 44);
  remove(0);
  expect_whole_or_nothing({[&] {
                             ASSERT_TRUE(recover_journal(region_, geometry_).ok());
                             journal_ = std::make_unique<Journal>(region_, geometry_);
                           },
                           [&] { create(0, 8); }});
}

TEST_F(JournalCrash, ATornRecordIsNeverTakenUpLater) {
  region_.start_recording();
  create(0, 5);
  const auto events = region_.events();
  // The power went with the record on the media and the body not: the create never happened.
  pmem::ExploreOptions options;
  bool seen_torn = false;
  pmem::each_crash_image(region_.initial(), events, options, [&](const pmem::CrashImage& image) {
    pmem::RecordingRegion after(image.words);
    const auto first = recover_journal(after, geometry_);
    if (!first.ok() || first->records_found == first->records_replayed) return true;
    seen_torn = true;
    // Its bytes come to stand there after all; a second recovery must not believe the record.
    after.store(object(0) + kWordSize, body_of(5));
    const auto second = recover_journal(after, geometry_);
    EXPECT_TRUE(second.ok());
    EXPECT_EQ(after.load(object(0)), 0U) << image.description();
    return true;
  });
  EXPECT_TRUE(seen_torn);
}

}  // namespace
}  // namespace streamfs::meta
