// Two copies of one region: what goes to both, what it costs, and what is done where they differ.
#include "pmem/mirror_region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"
#include "tests/unit/pmem/failing_region.h"

namespace streamfs::pmem {
namespace {

constexpr uint64_t kCopyBytes = 8192;

class Mirror : public testing::Test {
 protected:
  Mirror() {
    auto first = std::make_unique<RecordingRegion>(kCopyBytes, MetaClass::kPersistent);
    auto second = std::make_unique<RecordingRegion>(2 * kCopyBytes, MetaClass::kSynced);
    first_ = first.get();
    second_ = second.get();
    mirror_ = std::make_unique<MirrorRegion>(std::move(first), std::move(second));
  }
  static auto count(const RecordingRegion& region, RecordingRegion::Event::Kind kind) {
    return std::ranges::count(region.events(), kind, &RecordingRegion::Event::kind);
  }

  using Kind = RecordingRegion::Event::Kind;
  std::unique_ptr<MirrorRegion> mirror_;
  RecordingRegion* first_ = nullptr;
  RecordingRegion* second_ = nullptr;
};

TEST_F(Mirror, IsAsLargeAsTheSmallerAndPromisesWhatBothKeep) {
  EXPECT_EQ(mirror_->size(), kCopyBytes);
  EXPECT_EQ(mirror_->meta_class(), MetaClass::kSynced);
}

TEST_F(Mirror, EveryKindOfStoreReachesBoth) {
  mirror_->store(64, std::array<uint64_t, 2>{1, 2});
  mirror_->store_word(128, 3);
  mirror_->store_masked(136, 0xff00, 0xabcd);
  mirror_->store_half(148, 9);
  for (const uint64_t at : {64U, 72U, 128U, 136U, 144U}) {
    EXPECT_NE(first_->load(at), 0U);
    EXPECT_EQ(first_->load(at), second_->load(at)) << at;
  }
  EXPECT_EQ(mirror_->load(136), 0xab00U);
}

TEST_F(Mirror, AStoreThatChangesNothingInTheFirstStillReachesTheSecond) {
  first_->store_word(64, 7);
  second_->store_word(136, 0xff);
  mirror_->store_word(64, 7);
  mirror_->store_masked(136, 0xf, 0);
  EXPECT_EQ(second_->load(64), 7U);
  EXPECT_EQ(second_->load(136), 0xf0U);
}

TEST_F(Mirror, AFlushAndAFenceAreOneForTheCallerAndReachBoth) {
  mirror_->store_word(0, 1);
  Flushed flushed = mirror_->flush(0, 65);
  EXPECT_EQ(flushed.lines(), 2U);
  mirror_->fence(std::move(flushed));
  for (const RecordingRegion* side : {first_, second_}) {
    EXPECT_EQ(count(*side, Kind::kFlush), 2);
    EXPECT_EQ(count(*side, Kind::kFence), 1);
  }
  EXPECT_EQ(mirror_->counters().fences, 1U);
  EXPECT_EQ(mirror_->counters().lines_flushed, 2U);
  EXPECT_EQ(mirror_->counters().words_programmed, 1U);
}

TEST_F(Mirror, BothLinesAreFlushedBeforeEitherFence) {
  mirror_->store_word(0, 1);
  mirror_->flush(0, 8).leave();
  EXPECT_EQ(count(*first_, Kind::kFlush), 1);
  EXPECT_EQ(count(*second_, Kind::kFlush), 1);
  EXPECT_EQ(count(*first_, Kind::kFence) + count(*second_, Kind::kFence), 0);
}

TEST_F(Mirror, SyncAsksBoth) {
  ASSERT_TRUE(mirror_->sync().ok());
  EXPECT_EQ(first_->counters().syncs, 1U);
  EXPECT_EQ(second_->counters().syncs, 1U);
}

TEST_F(Mirror, ADifferenceIsSeenAndMadeAwayWithDurably) {
  mirror_->store_word(64, 5);
  EXPECT_TRUE(mirror_->alike(0, kCopyBytes));
  EXPECT_FALSE(mirror_->equalise(0, 64, 64));
  second_->store_word(72, 6);
  EXPECT_FALSE(mirror_->alike(72, 4));
  EXPECT_TRUE(mirror_->alike(64, 8));
  second_->start_recording();
  EXPECT_TRUE(mirror_->equalise(0, 64, 16));
  EXPECT_TRUE(mirror_->alike(0, kCopyBytes));
  EXPECT_EQ(second_->load(72), 0U);
  EXPECT_EQ(count(*second_, Kind::kFlush), 1);
  EXPECT_EQ(count(*second_, Kind::kFence), 1);
  first_->store_word(64, 1);
  EXPECT_TRUE(mirror_->equalise(1, 64, 16));
  EXPECT_EQ(mirror_->load(64), 5U);
}

// Two copies that can be let fail, and what the handler was told.
class FailingMirror : public testing::Test {
 protected:
  FailingMirror() {
    for (auto& side : sides_) {
      auto made =
          std::make_unique<FailingRegion>(make_memory_region(kCopyBytes, MetaClass::kSynced));
      side = made.get();
      (side == sides_[0] ? first_ : second_) = std::move(made);
    }
    mirror_ = std::make_unique<MirrorRegion>(std::move(first_), std::move(second_));
  }
  void handle(Result<void> answer) {
    mirror_->on_copy_dropped([this, answer](Region& left, const std::string& why) {
      ++asked_;
      EXPECT_EQ(mirror_->copies(), 1U) << "it stores into what is left";
      EXPECT_EQ(&left, &mirror_->copy(0));
      EXPECT_NE(why.find("the copy that fails"), std::string::npos);
      return answer;
    });
  }

  std::array<FailingRegion*, 2> sides_{};
  std::unique_ptr<Region> first_, second_;
  std::unique_ptr<MirrorRegion> mirror_;
  int asked_ = 0;
};

TEST_F(FailingMirror, ACopyThatFailsIsDroppedOnceAndTheOtherGoesOn) {
  handle({});
  mirror_->store_word(64, 1);
  sides_[0]->fail();
  EXPECT_EQ(mirror_->dropped(), "");
  EXPECT_TRUE(mirror_->sync().ok());
  EXPECT_NE(mirror_->dropped(), "");
  mirror_->store_word(64, 2);
  mirror_->store_masked(72, 0xff, 3);
  EXPECT_EQ(mirror_->load(64), 2U) << "read from what is left";
  EXPECT_EQ(sides_[1]->load(72), 3U);
  EXPECT_EQ(sides_[0]->load(64), 1U) << "and the other is left alone";
  EXPECT_TRUE(mirror_->sync().ok());
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(&mirror_->copy(1), sides_[1]);
  EXPECT_TRUE(mirror_->alike(0, kCopyBytes));
  EXPECT_FALSE(mirror_->equalise(0, 64, 8));
}

TEST_F(FailingMirror, TheSecondMayFailToo) {
  handle({});
  sides_[1]->fail();
  EXPECT_TRUE(mirror_->sync().ok());
  mirror_->store_word(64, 2);
  EXPECT_EQ(sides_[0]->load(64), 2U);
  EXPECT_EQ(sides_[1]->load(64), 0U);
}

TEST_F(FailingMirror, NothingIsPromisedOnceBothFail) {
  handle({});
  sides_[0]->fail();
  EXPECT_TRUE(mirror_->sync().ok());
  sides_[1]->fail();
  EXPECT_EQ(mirror_->sync().error().code, EIO);
}

TEST_F(FailingMirror, BothAtOnceDropNone) {
  handle({});
  sides_[0]->fail();
  sides_[1]->fail();
  EXPECT_EQ(mirror_->sync().error().code, EIO);
  EXPECT_EQ(asked_, 0);
}

TEST_F(FailingMirror, WithoutItBeingSaidOnMediaNothingIsPromised) {
  handle(Error{ENOSPC, "not said"});
  sides_[0]->fail();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(mirror_->sync().error().code, ENOSPC);
  EXPECT_EQ(asked_, 1);
}

TEST_F(FailingMirror, WithoutAHandlerNothingIsPromised) {
  sides_[1]->fail();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(mirror_->sync().error().code, EIO);
}

// Under the thread sanitizer, above all.
TEST_F(FailingMirror, OthersLoadStoreAndSyncMeanwhile) {
  std::atomic<bool> said{false};
  mirror_->on_copy_dropped([&](Region&, const std::string&) -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    said = true;
    return {};
  });
  constexpr uint64_t kRounds = 2000;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t round = 1; round <= kRounds; ++round) {
        mirror_->store_word(i * kLineSize, round);
        mirror_->fence(mirror_->flush(i * kLineSize, kWordSize));
        EXPECT_EQ(mirror_->load(i * kLineSize), round);
        const bool failed = i == 0 && round == kRounds / 2;
        if (failed) sides_[0]->fail();
        EXPECT_TRUE(mirror_->sync().ok());
        EXPECT_TRUE(said || !failed) << "nobody is answered before";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(sides_[1]->load(i * kLineSize), kRounds);
  EXPECT_LT(sides_[0]->load(0), kRounds);
}

TEST(OneCopy, IsAlikeAndHasNothingToEqualise) {
  const auto region = make_memory_region(kCopyBytes, MetaClass::kPersistent);
  EXPECT_EQ(region->copies(), 1U);
  EXPECT_EQ(&region->copy(0), region.get());
  EXPECT_TRUE(region->alike(0, kCopyBytes));
  EXPECT_FALSE(region->equalise(0, 0, 64));
}

}  // namespace
}  // namespace streamfs::pmem
