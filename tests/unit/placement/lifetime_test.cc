#include "fuse-fs/placement/lifetime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/types.h"

namespace streamfs::placement {
namespace {

const VStreamId kA{1}, kB{2};

// The reference for the O(1) account: a stamp for each page, and each page's life counted.
struct Reference {
  std::map<uint64_t, std::pair<uint16_t, uint64_t>> pages;  // page → vStream, written
  std::map<uint16_t, uint64_t> exposure;
  uint64_t clock = 1;
  void die(uint64_t page) {
    const auto it = pages.find(page);
    if (it == pages.end()) return;
    exposure[it->second.first] += clock - it->second.second;
    pages.erase(it);
  }
  uint64_t total(uint16_t v) {
    uint64_t sum = exposure[v];
    for (const auto& [page, life] : pages) sum += life.first == v ? clock - life.second : 0;
    return sum;
  }
};

TEST(Lifetime, ADeviceThatGrewIsMeasuredOnWhatIsNew) {
  LifetimeTable table(64);
  table.born(BlockNo{100'000}, 16, kA);
  EXPECT_EQ(table.live_pages(kA), 0U) << "not there yet";
  table.born(BlockNo{0}, 16, kA);
  for (const uint64_t blocks : {65U, 4000U, 200'000U}) {
    table.grow(blocks);
    table.born(BlockNo{blocks - 1}, 1, kB);
  }
  EXPECT_EQ(table.live_pages(kB), 3U);
  table.died(BlockNo{0}, 200'000);
  EXPECT_EQ(table.live_pages(kA), 0U);
  EXPECT_EQ(table.seen(kA).dead_pages, 16U);
  EXPECT_EQ(table.seen(kB).dead_pages, 3U);
}

TEST(Lifetime, ABlockThatLivesIsKnownAndOneThatDiedIsNot) {
  LifetimeTable table(4096);
  EXPECT_FALSE(table.birth(BlockNo{32})) << "never written";
  table.born(BlockNo{32}, 4, kA);
  const uint64_t written = table.now() - 4;
  table.born(BlockNo{2000}, 100, kB);
  const auto found = table.birth(BlockNo{35});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->vstream, kA);
  EXPECT_NEAR(static_cast<double>(found->clock), static_cast<double>(written), 4);
  EXPECT_FALSE(table.birth(BlockNo{36})) << "another page of its 64 KiB";
  table.died(BlockNo{35}, 1);
  EXPECT_FALSE(table.birth(BlockNo{35}));
  EXPECT_TRUE(table.birth(BlockNo{34}));
  EXPECT_FALSE(table.birth(BlockNo{1 << 20})) << "beyond the device";
}

TEST(Lifetime, ExposureIsExactWhateverIsWrittenWhere) {
  LifetimeTable table(4096);
  Reference reference;
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t first = random() % 4000;
    const uint64_t count = 1 + random() % 40;
    // Each vStream has areas of its own, as files have: shared units are the next test's.
    const VStreamId v{static_cast<uint16_t>(1 + first / 16 % 3)};
    const uint64_t last = std::min<uint64_t>(first + count, round_down(first, 16) + 16);
    if (random() % 4 == 0) {
      table.died(BlockNo{first}, last - first);
      for (uint64_t p = first; p < last; ++p) reference.die(p);
    } else {
      table.born(BlockNo{first}, static_cast<uint32_t>(last - first), v);
      reference.clock += last - first;
      for (uint64_t p = first; p < last; ++p) {
        reference.die(p);
        reference.pages[p] = {v.value, reference.clock};
      }
    }
  }
  uint64_t ours = 0, theirs = 0;
  for (uint16_t v = 1; v <= 3; ++v) {
    ours += table.exposure(VStreamId{v});
    theirs += reference.total(v);
    EXPECT_EQ(table.exposure(VStreamId{v}), reference.total(v));
  }
  EXPECT_EQ(ours, theirs);
}

TEST(Lifetime, AUnitThatChangesItsVStreamLosesNoExposure) {
  LifetimeTable table(64);
  table.born(BlockNo{0}, 16, kA);
  table.born(BlockNo{32}, 16, kB);  // 16 pages of time
  EXPECT_EQ(table.exposure(kA), 16U * 16U);
  table.born(BlockNo{0}, 1, kB);
  EXPECT_EQ(table.live_pages(kA), 0U);
  EXPECT_EQ(table.live_pages(kB), 32U);
  EXPECT_EQ(table.exposure(kA), 16U * 17U);
  EXPECT_EQ(table.seen(kA).dead_pages, 1U);
}

TEST(Lifetime, ALogOfSixteenPagesRewrittenInTurnLivesSixteenPages) {
  LifetimeTable table(4096);
  for (int i = 0; i < 500; ++i) table.born(BlockNo{static_cast<uint64_t>(i % 16) * 16}, 16, kA);
  const auto pages = table.lifetime_pages(kA);
  ASSERT_TRUE(pages.has_value());
  EXPECT_NEAR(*pages, 16 * 16, 30);
}

TEST(Lifetime, TheLivingCountAgainstAnEarlyGuess) {
  // 32 pages die at once, 992 live on: their mean life is not that of the 32.
  LifetimeTable table(1 << 16);
  table.born(BlockNo{0}, 1024, kA);
  table.died(BlockNo{0}, 32);
  table.born(BlockNo{8192}, 4096, kB);
  EXPECT_GT(table.lifetime_pages(kA).value(), 4096.0 * 992 / 32 * 0.9);
}

TEST(Lifetime, WindowsForgetAnOldBehaviour) {
  LifetimeTable table(1 << 16);
  const auto rewrite = [&](uint64_t span_units, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      table.born(BlockNo{static_cast<uint64_t>(i) % span_units * 16}, 16, kA);
      if (i % 64 == 63) table.close_window();
    }
  };
  rewrite(128, 2000);
  EXPECT_NEAR(*table.lifetime_pages(kA), 2048, 500);
  table.died(BlockNo{0}, 2048);
  rewrite(4, 3000);
  EXPECT_NEAR(*table.lifetime_pages(kA), 64, 20);
}

TEST(Lifetime, FewDeathsSayNothing) {
  LifetimeTable table(1024);
  table.born(BlockNo{0}, 512, kA);
  table.died(BlockNo{0}, 31);
  EXPECT_FALSE(table.lifetime_pages(kA).has_value());
  table.died(BlockNo{31}, 1);
  EXPECT_TRUE(table.lifetime_pages(kA).has_value());
}

TEST(Lifetime, ThreadsOnOneUnitLoseNoPage) {
  LifetimeTable table(64);
  std::vector<std::thread> threads;
  for (uint16_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&table, t] {
      for (int i = 0; i < 20000; ++i) {
        table.born(BlockNo{static_cast<uint64_t>((i * 7 + t) % 60)}, 3, VStreamId{t});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  table.died(BlockNo{0}, 64);
  uint64_t dead = 0;
  for (uint16_t t = 1; t <= 4; ++t) {
    EXPECT_EQ(table.live_pages(VStreamId{t}), 0U);
    dead += table.seen(VStreamId{t}).dead_pages;
  }
  EXPECT_EQ(dead, 4U * 20000 * 3);
}

}  // namespace
}  // namespace streamfs::placement
