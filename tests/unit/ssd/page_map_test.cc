// The FTL without data: what Media and Victim are promised. Write amplification: formula_test.cc.
#include "ssd/ftl/page_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/media/null_media.h"
#include "ssd/victim/greedy.h"
#include "ssd/victim/view.h"
#include "tests/unit/ssd/bare_device.h"

namespace streamfs::ssd {
namespace {

Geometry geometry_of(uint32_t user_pages, uint32_t pages_per_block, uint32_t blocks) {
  Geometry geometry;
  geometry.user_pages = user_pages;
  geometry.pages_per_block = pages_per_block;
  geometry.blocks = blocks;
  geometry.gc_mode = GcMode::kSameStream;
  return geometry;
}

TEST(PageMap, NoSpaceIsAnErrorAndTrimMakesRoomAgain) {
  const Geometry geometry = geometry_of(4096, 16, 80);  // 1280 physical pages
  Greedy victim(geometry);
  BareDevice device(geometry, victim);
  Lpn page = 0;
  while (page < 4096 && device.ftl.write(page, 1, 0, 0, nullptr) == 0) ++page;
  EXPECT_GT(page, 1200u);
  ASSERT_LE(page, 1280u);
  EXPECT_EQ(device.ftl.write(page, 1, 0, 0, nullptr), ENOSPC);
  for (Lpn i = 0; i < 300; ++i) device.ftl.trim(i * 4);
  EXPECT_EQ(device.live.live_pages, page - 300);
  for (Lpn i = 0; i < 200; ++i) ASSERT_EQ(device.ftl.write(2000 + i, 1, 0, 0, nullptr), 0);
  for (Lpn i = 0; i < 10'000; ++i) ASSERT_EQ(device.ftl.write(2000 + i % 200, 1, 0, 0, nullptr), 0);
}

// Overwrites half full to begin with; what is withheld comes back when all of it is needed.
TEST(PageMap, WithBlocksWithheldItCollectsAsASmallerDeviceDoes) {
  constexpr uint32_t kSmall = 40, kLarge = 80, kLive = 544;
  uint64_t copied[2];
  for (const uint32_t blocks : {kSmall, kLarge}) {
    const Geometry geometry = geometry_of(4096, 16, blocks);
    Greedy victim(geometry);
    BareDevice device(geometry, victim);
    device.ftl.withhold(blocks - kSmall);
    std::mt19937 random(1);
    for (Lpn page = 0; page < kLive; ++page) ASSERT_EQ(device.ftl.write(page, 1, 0, 0, nullptr), 0);
    for (int i = 0; i < 10'000; ++i) {
      ASSERT_EQ(device.ftl.write(static_cast<Lpn>(random() % kLive), 1, 0, 0, nullptr), 0);
    }
    copied[blocks == kLarge] = device.counters.gc_pages;
    if (blocks == kSmall) continue;
    for (Lpn page = kLive; page < 1200; ++page)
      ASSERT_EQ(device.ftl.write(page, 1, 0, 0, nullptr), 0) << "what is withheld is not lost";
  }
  EXPECT_GT(copied[0], 5'000u);
  EXPECT_EQ(copied[0], copied[1]);
}

TEST(PageMap, ASealedBlockCanBeCollectedAndItsFrontierOpensAnother) {
  const Geometry geometry = geometry_of(4096, 16, 80);
  Greedy victim(geometry);
  BareDevice device(geometry, victim);
  for (Lpn i = 0; i < 8; ++i) ASSERT_EQ(device.ftl.write(i, 1, 0, 0, nullptr), 0);
  for (Lpn i = 0; i < 8; ++i) device.ftl.trim(i);
  EXPECT_EQ(victim.choose(0), kNoBlock) << "it is open";
  device.ftl.seal(0);
  device.ftl.seal(0);  // nothing is open any more
  const BlockIndex sealed = victim.choose(0);
  EXPECT_NE(sealed, kNoBlock);
  ASSERT_EQ(device.ftl.write(9, 1, 0, 0, nullptr), 0);
  EXPECT_NE(device.ftl.location(9) / 16, sealed);
}

// Media that keeps what each physical page holds, refuses wrong orders, and can run full.
struct StrictMedia {
  explicit StrictMedia(const Geometry& g)
      : geometry(g), stamped(g.blocks), announced(g.blocks), holds(g.physical_pages(), kNoPage) {}

  int store(Ppn at, const std::byte*, uint32_t) {
    EXPECT_EQ(at % geometry.pages_per_block, stamped[at / geometry.pages_per_block]);
    return failing ? EIO : 0;
  }
  int move(std::span<const Ppn>, Ppn to) { return store(to, nullptr, 0); }
  void stamp(Ppn at, Lpn page) {
    EXPECT_EQ(at % geometry.pages_per_block, stamped[at / geometry.pages_per_block]++);
    holds[at] = page;
  }
  void stamp_host(Ppn at, Lpn page, WriteStamp s) {
    EXPECT_GT(s.sequence, last_sequence);
    last_sequence = s.sequence;
    stamp(at, page);
  }
  void stamp_copy(Ppn at, Ppn from, uint64_t) { stamp(at, holds[from]); }
  void stamp_pad(Ppn at, uint64_t) { stamp(at, kNoPage); }
  void opened(BlockIndex block, FrontierId) { EXPECT_EQ(stamped[block], 0u); }
  void committed(BlockIndex block, uint32_t pages) {
    EXPECT_LE(pages, stamped[block]);
    announced[block] = pages;
  }
  bool erased(BlockIndex block) {
    EXPECT_EQ(announced[block], stamped[block]) << "whole, or sealed";
    stamped[block] = announced[block] = 0;
    return true;
  }
  void failed(BlockIndex) {}
  void retired(BlockIndex) {}

  Geometry geometry;
  std::vector<uint32_t> stamped, announced;
  std::vector<Lpn> holds;
  uint64_t last_sequence = 0;
  bool failing = false;
};

TEST(PageMap, PagesAreProgrammedInOrderOncePerErase) {
  for (const bool plp : {true, false}) {
    Geometry geometry = geometry_of(4096, 32, 160);
    geometry.streams = 4;
    geometry.plp = plp;
    geometry.gc_mode = GcMode::kOwnFrontier;
    Greedy victim(geometry);
    BareDevice<Greedy, StrictMedia> device(geometry, victim);
    std::minstd_rand random(2);
    for (int i = 0; i < 50'000; ++i) {
      const auto pages = static_cast<uint32_t>(1 + random() % 9);
      const auto stream = static_cast<FrontierId>(random() % 4);
      ASSERT_EQ(
          device.ftl.write(static_cast<Lpn>(random() % (4096 - pages)), pages, stream, 0, nullptr),
          0);
      if (random() % 50 == 0) device.ftl.trim(static_cast<Lpn>(random() % 4096));
      if (random() % 100 == 0) device.ftl.flush();
      const auto committed = static_cast<FrontierId>(random() % 100);
      if (committed < 4) {
        ASSERT_EQ(device.ftl.commit(committed), 0);
      }
      const auto sealed = static_cast<FrontierId>(random() % 100);
      if (sealed < 4) device.ftl.seal(sealed);
    }
    EXPECT_GT(device.counters.erases, 1000u);
    for (Lpn page = 0; page < 4096; ++page) {
      if (!device.ftl.live(page)) continue;
      EXPECT_EQ(device.media.holds[device.ftl.location(page)], page);
    }
  }
}

TEST(PageMap, ACommitPadsTheWordlineOfItsFrontierOnly) {
  Geometry geometry = geometry_of(4096, 32, 160);
  geometry.streams = 2;
  geometry.plp = false;
  geometry.wordline_pages = 16;
  geometry.gc_mode = GcMode::kOwnFrontier;
  Greedy victim(geometry);
  BareDevice<Greedy, StrictMedia> device(geometry, victim);
  ASSERT_EQ(device.ftl.write(0, 1, 0, 0, nullptr), 0);
  ASSERT_EQ(device.ftl.write(1, 1, 1, 0, nullptr), 0);
  const auto committed_of = [&](Lpn page) {
    return device.media.announced[device.ftl.location(page) / geometry.pages_per_block];
  };
  ASSERT_EQ(device.ftl.commit(1), 0);
  EXPECT_EQ(device.counters.pad_pages, 15u);
  EXPECT_EQ(committed_of(0), 0u);
  EXPECT_EQ(committed_of(1), 16u);
  ASSERT_EQ(device.ftl.commit(1), 0);
  EXPECT_EQ(device.counters.pad_pages, 15u) << "nothing is in the buffer";
}

// Greedy that checks what it is told against its own count of what it collected.
struct CountingVictim : Greedy {
  explicit CountingVictim(const Geometry& geometry) : Greedy(geometry), erases(geometry.blocks) {}
  void add(BlockIndex block, const BlockView& view) {
    EXPECT_EQ(view.erases, erases[block]);
    EXPECT_LE(view.opened_at, host_pages);
    EXPECT_EQ(view.frontier, 0);
    Greedy::add(block, view);
  }
  void remove(BlockIndex block, uint32_t valid) {
    ++erases[block];
    Greedy::remove(block, valid);
  }
  std::vector<uint32_t> erases;
  uint64_t host_pages = 0;
};

TEST(PageMap, TellsTheVictimPolicyHowOftenABlockWasErased) {
  const Geometry geometry = geometry_of(1024, 16, 80);
  CountingVictim victim(geometry);
  BareDevice device(geometry, victim);
  std::mt19937 random(5);
  for (; victim.host_pages < 20'000; ++victim.host_pages)
    ASSERT_EQ(device.ftl.write(random() % 1024, 1, 0, 0, nullptr), 0);
  EXPECT_GT(*std::ranges::max_element(victim.erases), 10u);
}

// Puts copies on frontiers 1 to 3 by their page, and counts how often it is asked.
struct CountingRouter {
  FrontierId for_copy(Lpn page, FrontierId, uint64_t) {
    ++asked;
    return static_cast<FrontierId>(1 + page % 7 % 3);
  }
  void collected(FrontierId, uint64_t, uint64_t) {}
  uint64_t asked = 0;
};

TEST(PageMap, AsksOnceForEachCopyWhereItGoes) {
  Geometry geometry = geometry_of(4096, 32, 160);
  geometry.streams = 4;
  Greedy victim(geometry);
  BareDevice<Greedy, NullMedia, CountingRouter> device(geometry, victim);
  std::mt19937 random(8);
  for (int i = 0; i < 50'000; ++i)
    ASSERT_EQ(device.ftl.write(random() % 4096, 1, 0, 0, nullptr), 0);
  EXPECT_GT(device.counters.gc_pages, 10'000u);
  EXPECT_EQ(device.router.asked, device.counters.gc_pages);
}

void churn(auto& device, uint32_t seed, int writes) {
  std::minstd_rand random(seed);
  for (int i = 0; i < writes; ++i) {
    const auto stream = static_cast<FrontierId>(random() % 4);
    ASSERT_EQ(device.ftl.write(random() % 4096, 1, stream, 0, nullptr), 0);
    if (random() % 20 == 0) device.ftl.trim(random() % 4096);
  }
}

TEST(PageMap, WhatGoesOnFromAnotherCopiesAsItWouldHave) {
  Geometry geometry = geometry_of(4096, 32, 160);
  geometry.streams = 4;
  Greedy victim(geometry), other_victim(geometry);
  BareDevice device(geometry, victim), other(geometry, other_victim);
  churn(device, 1, 20'000);
  churn(other, 2, 30'000);
  other.ftl.go_on_from(device.ftl);
  EXPECT_EQ(other.live.live_pages, device.live.live_pages);
  const Counters before = device.counters, other_before = other.counters;
  churn(device, 3, 20'000);
  churn(other, 3, 20'000);
  EXPECT_GT(device.counters.gc_pages - before.gc_pages, 1000u);
  EXPECT_EQ(other.counters.gc_pages - other_before.gc_pages,
            device.counters.gc_pages - before.gc_pages);
  for (Lpn page = 0; page < 4096; ++page)
    ASSERT_EQ(other.ftl.location(page), device.ftl.location(page)) << page;
}

TEST(PageMap, WhatGoesOnFromAnotherLeavesItAlone) {
  Geometry geometry = geometry_of(4096, 32, 160);
  geometry.streams = 4;
  Greedy victim(geometry), other_victim(geometry), copy_victim(geometry);
  BareDevice device(geometry, victim), other(geometry, other_victim), copy(geometry, copy_victim);
  churn(device, 1, 20'000);
  churn(copy, 1, 20'000);
  other.ftl.go_on_from(device.ftl);
  churn(other, 4, 20'000);
  churn(device, 3, 20'000);
  churn(copy, 3, 20'000);
  EXPECT_EQ(device.counters.gc_pages, copy.counters.gc_pages);
}

TEST(PageMap, AFailingMediumLosesNothingAlreadyWritten) {
  const Geometry geometry = geometry_of(1024, 16, 80);
  Greedy victim(geometry);
  BareDevice<Greedy, StrictMedia> device(geometry, victim);
  std::mt19937 random(4);
  for (int i = 0; i < 20'000; ++i) {
    device.media.failing = random() % 3 == 0;
    const int error = device.ftl.write(random() % 1024, 1, 0, 0, nullptr);
    ASSERT_TRUE(error == 0 || (device.media.failing && error == EIO));
  }
  for (Lpn page = 0; page < 1024; ++page) {
    if (!device.ftl.live(page)) continue;
    EXPECT_EQ(device.media.holds[device.ftl.location(page)], page);
  }
}

}  // namespace
}  // namespace streamfs::ssd
