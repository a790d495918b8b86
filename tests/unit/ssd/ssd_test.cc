// The emulated SSD with data: content, streams, restart, kill, space, statistics.
#include "ssd/ssd.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/layout.h"
#include "tests/support/temporary.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

TEST_F(SsdTest, UnwrittenAndTrimmedPagesReadAsZeroes) {
  create(small_device());
  const auto ssd = open();
  put(*ssd, 10, 3, 1);
  ASSERT_TRUE(ssd->trim(11, 1).ok());
  EXPECT_EQ(get(*ssd, 10, 1), content(10, 1, 1));
  EXPECT_EQ(get(*ssd, 11, 1), content(11, 1, 0));
  EXPECT_EQ(get(*ssd, 500, 1), content(500, 1, 0));
  EXPECT_EQ(ssd->write(4096, content(0, 1, 1), {}, {}).error().code, EINVAL);
  EXPECT_EQ(ssd->trim(4095, 2).error().code, EINVAL);
}

class SsdBothWays : public SsdTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Plp, SsdBothWays, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "plp" : "volatile"; });

TEST_P(SsdBothWays, ContentSurvivesGarbageCollectionAndRestart) {
  using enum VictimKind;
  for (const auto& [mode, victim] : {std::pair{GcMode::kSameStream, kGreedy},
                                     {GcMode::kOwnFrontier, kGreedy},
                                     {GcMode::kOwnFrontier, kCostBenefit},
                                     {GcMode::kShared, kGreedy}}) {
    GeometryRequest request = small_device(4, GetParam());
    request.gc_mode = mode;
    request.victim = victim;
    create(request);
    std::vector<uint64_t> model(4096);
    churn(*open(), model, 1, 1500);
    auto ssd = open();
    EXPECT_GT(ssd->stats().gc_bytes, 0u);
    EXPECT_EQ(ssd->stats().damaged_pages, 0u);
    if (GetParam()) check(*ssd, model);
    std::fill(model.begin(), model.end(), 0);
    ASSERT_TRUE(ssd->trim(0, 4096).ok());
    churn(*ssd, model, 2, 1500);
    ASSERT_TRUE(ssd->flush().ok());
    ssd.reset();
    check(*open(), model);
  }
}

// A child writes in a known order and says in shared memory how far it is; it is killed at random.
class SsdKill : public SsdBothWays {
 protected:
  struct Progress {
    std::atomic<uint64_t> begun{0}, returned{0}, flushed{0};
  };
  struct Step {
    uint64_t page, pages, version;  // version 0: trim
    uint16_t stream;
  };

  static Step step(uint64_t seed, uint64_t number) {
    std::mt19937_64 random(seed * 1'000'003 + number);
    const uint64_t pages = 1 + random() % 48;
    return {random() % (4096 - pages), pages, random() % 8 == 0 ? 0 : number + 1,
            static_cast<uint16_t>(random() % 4)};
  }

  void child(Progress& progress, uint64_t seed, uint64_t first) {
    const auto ssd = open();
    for (uint64_t number = first;; ++number) {
      const Step s = step(seed, number);
      progress.begun = number + 1;
      if (s.version == 0) {
        (void)ssd->trim(s.page, s.pages);
      } else {
        (void)ssd->write(s.page, content(s.page, s.pages, s.version), {}, PStreamId{s.stream});
      }
      progress.returned = number + 1;
      if (number % 64 == 63 && ssd->flush().ok()) progress.flushed = number + 1;
    }
  }

  // Versions that a page may have: what was durable, or any later step that touched it.
  static void check_after_kill(Ssd& ssd, uint64_t seed, uint64_t durable, uint64_t begun) {
    std::vector<std::vector<uint64_t>> allowed(4096, {0});
    for (uint64_t number = 0; number < begun; ++number) {
      const Step s = step(seed, number);
      for (uint64_t page = s.page; page < s.page + s.pages; ++page) {
        if (number < durable) allowed[page].clear();
        allowed[page].push_back(s.version);
      }
    }
    for (uint64_t page = 0; page < allowed.size(); ++page) {
      const auto bytes = get(ssd, page, 1);
      const bool known = std::ranges::any_of(allowed[page], [&](uint64_t version) {
        return same_bytes(bytes, content(page, 1, version));
      });
      ASSERT_TRUE(known) << "page " << page << " seed " << seed << " durable " << durable
                         << " begun " << begun;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Plp, SsdKill, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "plp" : "volatile"; });

TEST_P(SsdKill, NothingAcknowledgedIsLostWhenTheProcessIsKilled) {
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    create(small_device(4, GetParam()));
    new (progress) Progress;
    const pid_t pid = fork();
    if (pid == 0) {
      child(*progress, seed, 0);
      _exit(0);
    }
    usleep(static_cast<useconds_t>(20'000 + seed * 7'919 % 60'000));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    const auto ssd = open();
    ASSERT_EQ(ssd->stats().damaged_pages, 0u);
    const uint64_t durable = GetParam() ? progress->returned.load() : progress->flushed.load();
    check_after_kill(*ssd, seed, durable, progress->begun);
    if (HasFatalFailure()) break;
  }
  munmap(progress, sizeof(Progress));
}

TEST_F(SsdTest, ThreadsThatWriteReadAndTrimTheirOwnPagesDoNotDisturbEachOther) {
  create(small_device());
  const auto ssd = open();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint16_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<uint64_t> model(1024);
      for (uint64_t i = 1; i < 600; ++i) {
        const uint64_t pages = 1 + random() % 16, at = random() % (model.size() - pages);
        const uint64_t first = t * 1024 + at;
        const uint64_t version = i % 9 == 0 ? 0 : i;
        const bool done =
            version == 0 ? ssd->trim(first, pages).ok()
                         : ssd->write(first, content(first, pages, version), {}, PStreamId{t}).ok();
        std::fill_n(model.begin() + static_cast<ptrdiff_t>(at), pages, version);
        const uint64_t look = random() % model.size();
        if (!done || get(*ssd, t * 1024 + look, 1) != content(t * 1024 + look, 1, model[look]))
          ++wrong;
      }
    });
  }
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(observe_stats(path_).ok());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(ssd->stats().gc_bytes, 0u);
}

TEST_F(SsdTest, AnImageHasOneHolder) {
  create(small_device());
  const auto ssd = open();
  EXPECT_EQ(Ssd::open(path_, {}).error().code, EBUSY);
  Result<Geometry> geometry = plan_geometry(small_device());
  EXPECT_EQ(Image::create(path_, *geometry, true).error().code, EBUSY);
}

TEST_F(SsdTest, ReadingLeavesTheImageUntouched) {
  create(small_device());
  put(*open(), 0, 1, 1);
  const auto ssd = open({.read_only = true});
  EXPECT_EQ(get(*ssd, 0, 1), content(0, 1, 1));
  EXPECT_EQ(ssd->write(0, content(0, 1, 2), {}, {}).error().code, EROFS);
}

TEST_F(SsdTest, FlushPadsTheWordlineOnlyWithoutPowerLossProtection) {
  create(small_device(4, false));
  auto ssd = open();
  put(*ssd, 0, 1, 1, 0);
  put(*ssd, 1, 17, 1, 1);
  put(*ssd, 100, 16, 1, 2);
  ASSERT_TRUE(ssd->flush().ok());
  ASSERT_TRUE(ssd->flush().ok());
  EXPECT_EQ(ssd->stats().pad_bytes, 30 * kPageBytes);
  EXPECT_EQ(ssd->stats().nand_bytes, (34 + 30) * kPageBytes);
  ssd.reset();
  create(small_device(4, true));
  ssd = open();
  put(*ssd, 0, 1, 1);
  ASSERT_TRUE(ssd->flush().ok());
  EXPECT_EQ(ssd->stats().pad_bytes, 0u);
}

TEST_F(SsdTest, StreamsOfDifferentLifetimesAreSeparated) {
  double waf[2];
  for (const bool off : {false, true}) {
    create(small_device());
    const auto ssd = open({.streams_off = off});
    // Four logs of very different speed, each overwritten from the front again and again.
    uint64_t cursor[4] = {};
    std::mt19937_64 random(3);
    for (int i = 0; i < 30'000; ++i) {
      const uint64_t draw = random() % 1000;
      const uint16_t log = draw < 700 ? 0 : draw < 900 ? 1 : draw < 980 ? 2 : 3;
      put(*ssd, log * 1024u + cursor[log]++ % 1024, 1, static_cast<uint64_t>(i) + 1, log);
      if (i == 10'000) ssd->reset_stats();
    }
    waf[off ? 1 : 0] = ssd->stats().waf().value();
  }
  EXPECT_LT(waf[0], 1.05);
  EXPECT_GT(waf[1], 1.15);
}

TEST_F(SsdTest, AnImageKeepsItsVictimPolicyAndCostBenefitCopiesLessColdData) {
  uint64_t copied[2];
  for (const VictimKind victim : {VictimKind::kGreedy, VictimKind::kCostBenefit}) {
    GeometryRequest request = small_device();
    request.victim = victim;
    create(request);
    const auto ssd = open();
    EXPECT_EQ(ssd->geometry().victim, victim);
    std::mt19937_64 random(5);
    for (uint64_t page = 0; page < 4096; ++page) put(*ssd, page, 1, 1);
    // A tenth of the pages takes nine tenths of the writes; nothing tells them apart.
    for (uint64_t i = 0; i < 40'000; ++i)
      put(*ssd, random() % 10 < 9 ? random() % 410 : random() % 4096, 1, i + 2);
    copied[static_cast<size_t>(victim)] = ssd->stats().gc_bytes;
  }
  EXPECT_LT(copied[1], copied[0] * 9 / 10);
}

TEST_F(SsdTest, AFullDeviceIsOverwrittenForever) {
  for (const auto& [plp, victim] : {std::pair{true, VictimKind::kGreedy},
                                    {false, VictimKind::kGreedy},
                                    {true, VictimKind::kCostBenefit},
                                    {false, VictimKind::kCostBenefit}}) {
    GeometryRequest request = small_device(4, plp);
    request.victim = victim;
    create(request);
    const auto ssd = open();
    for (uint64_t round = 1; round < 6; ++round)
      for (uint64_t page = 0; page < 4096; page += 4)
        put(*ssd, page, 4, round, static_cast<uint16_t>(page / 4 % 4));
    EXPECT_EQ(ssd->stats().peak_live_bytes, 16 * kMiB);
    EXPECT_EQ(get(*ssd, 0, 4096), content(0, 4096, 5));
  }
}

TEST_F(SsdTest, DamageInTheSpareAreaIsCountedAndCostsThatPageOnly) {
  create(small_device());
  put(*open(), 0, 4, 1);
  {
    auto image = Image::open(path_, Image::Access::kHold, 0);
    ASSERT_TRUE(image.ok());
    for (SpareEntry& entry : (*image)->spare())
      if (entry.lpn == 2 && entry.sequence != 0) entry.vstream ^= 1;
  }
  const auto ssd = open();
  EXPECT_EQ(ssd->stats().damaged_pages, 1u);
  EXPECT_EQ(get(*ssd, 2, 1), content(2, 1, 0));
  EXPECT_EQ(get(*ssd, 3, 1), content(3, 1, 1));
}

TEST_F(SsdTest, ForeignDamagedAndTruncatedImagesAreRefused) {
  EXPECT_EQ(Ssd::open(path_, {}).error().code, ENOENT);
  create(small_device());
  ASSERT_EQ(truncate(path_.c_str(), 1 << 20), 0);
  EXPECT_EQ(Ssd::open(path_, {}).error().code, EINVAL);
  create(small_device());
  FILE* file = fopen(path_.c_str(), "r+");
  fseek(file, 20, SEEK_SET);
  fputc(9, file);
  fclose(file);
  EXPECT_EQ(Ssd::open(path_, {}).error().code, EINVAL);
}

TEST_F(SsdTest, AnImageWithAnUnknownVictimPolicyIsRefused) {
  create(small_device());
  FILE* file = fopen(path_.c_str(), "r+");
  ImageHeader header;
  ASSERT_EQ(fread(&header, sizeof(header), 1, file), 1U);
  header.victim = kVictimKinds;
  header.checksum =
      crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(ImageHeader, checksum)));
  ASSERT_EQ(fseek(file, 0, SEEK_SET), 0);
  ASSERT_EQ(fwrite(&header, sizeof(header), 1, file), 1U);
  fclose(file);
  const Error error = Ssd::open(path_, {}).error();
  EXPECT_EQ(error.code, EINVAL);
  EXPECT_NE(error.context.find("victims by a policy"), std::string::npos) << error.context;
}

TEST(Geometry, ImpossibleDevicesAreRefusedWithAReason) {
  const auto refused = [](auto change) {
    GeometryRequest request = small_device();
    change(request);
    const Result<Geometry> planned = plan_geometry(request);
    return !planned.ok() && planned.error().code == EINVAL &&
           planned.error().context.find("impossible geometry") == 0;
  };
  EXPECT_FALSE(refused([](GeometryRequest&) {}));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.spare = 0; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.spare = -1; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.streams = 0; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.streams = 129; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.streams = 64; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.user_bytes = 100; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.user_bytes = uint64_t{1} << 60; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.pages_per_block = 33; }));
}

}  // namespace
}  // namespace streamfs::ssd
