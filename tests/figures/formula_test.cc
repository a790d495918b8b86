// The FTL's write amplification beside formulas (lab/formulas/waf.h), uniform and two
// temperatures, and the formulas beside published values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <tuple>

#include "lab/formulas/waf.h"
#include "ssd/counters.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/victim/d_choices.h"
#include "ssd/victim/fifo.h"
#include "ssd/victim/greedy.h"
#include "ssd/victim/spare_split.h"
#include "ssd/victim/view.h"
#include "tests/unit/ssd/bare_device.h"

namespace streamfs::lab {
namespace {

using model::TwoTemperatures;

// While a block is collected two are free and each stream has one open: α counts none of them.
struct Device {
  Device(uint32_t user_pages, double spare, uint32_t pages_per_block, uint16_t streams) {
    geometry.user_pages = user_pages;
    geometry.pages_per_block = pages_per_block;
    geometry.streams = streams;
    geometry.gc_mode = ssd::GcMode::kSameStream;
    const auto closed =
        static_cast<uint32_t>(std::lround(user_pages * (1 + spare) / pages_per_block));
    geometry.blocks = closed + geometry.low_water + streams;
    alpha = static_cast<double>(closed) * pages_per_block / user_pages;
  }
  ssd::Geometry geometry;
  double alpha = 0;
};

// The share of copies once every page was overwritten `settle` times on average.
template <typename Victim, typename Draw>
double measured_waf(const Device& device, uint32_t settle, uint32_t measure, Draw draw,
                    const ssd::VictimOptions& options = {}) {
  Victim victim(device.geometry, options);
  ssd::BareDevice ssd(device.geometry, victim);
  const uint32_t user = device.geometry.user_pages;
  std::mt19937 random(1);
  const auto write = [&](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const ssd::Lpn page = draw(random);
      EXPECT_EQ(ssd.ftl.write(page, 1, draw.stream_of(page), 0, nullptr), 0);
    }
  };
  for (ssd::Lpn page = 0; page < user; ++page)
    EXPECT_EQ(ssd.ftl.write(page, 1, draw.stream_of(page), 0, nullptr), 0);
  write(uint64_t{settle} * user);
  const ssd::Counters before = ssd.counters;
  write(uint64_t{measure} * user);
  const ssd::Counters delta = ssd::difference(ssd.counters, before);
  return 1 + static_cast<double>(delta.gc_pages) / static_cast<double>(delta.host_pages);
}

struct UniformDraw {
  uint32_t user;
  ssd::FrontierId stream_of(ssd::Lpn) const { return 0; }
  ssd::Lpn operator()(std::mt19937& random) const {
    return static_cast<ssd::Lpn>(random() * user >> 32);
  }
};

class Uniform : public ::testing::TestWithParam<std::tuple<double, uint32_t>> {
 protected:
  const double spare = std::get<0>(GetParam());
  const uint32_t pages_per_block = std::get<1>(GetParam());
  const uint32_t user = pages_per_block < 256 ? 1 << 15 : pages_per_block * 128;
  const Device device{user, spare, pages_per_block, 1};
};

TEST_P(Uniform, GreedyIsWithinOnePercentOfItsFormula) {
  const double waf = measured_waf<ssd::Greedy>(device, 5, 5, UniformDraw{user});
  const double expected = model::greedy_waf(pages_per_block, device.alpha);
  EXPECT_NEAR(waf / expected, 1, 0.01) << waf << " beside " << expected;
}

TEST_P(Uniform, FifoIsWithinOnePercentOfItsFormula) {
  const double waf = measured_waf<ssd::Fifo>(device, 5, 5, UniformDraw{user});
  const double expected = model::fifo_waf(device.alpha);
  EXPECT_NEAR(waf / expected, 1, 0.01) << waf << " beside " << expected;
}

TEST_P(Uniform, ChoicesAreWithinTwoPercentOfTheMeanField) {
  for (const uint32_t choices : {2u, 10u}) {
    ssd::VictimOptions options;
    options.choices = choices;
    const double waf = measured_waf<ssd::DChoices>(device, 5, 5, UniformDraw{user}, options);
    const double expected = model::d_choices_waf(pages_per_block, device.alpha, choices);
    EXPECT_NEAR(waf / expected, 1, 0.02) << choices << ": " << waf << " beside " << expected;
  }
}

INSTANTIATE_TEST_SUITE_P(Formula, Uniform,
                         ::testing::Combine(::testing::Values(0.07, 0.15, 0.28),
                                            ::testing::Values(32u, 64u, 128u, 256u, 1024u)));

// Hot pages are the first ones; `streams` 1 mixes them with the cold, 2 separates perfectly.
struct HotAndColdDraw {
  uint32_t user;
  TwoTemperatures heat;
  uint16_t streams;
  uint32_t hot = static_cast<uint32_t>(heat.pages * user);
  ssd::FrontierId stream_of(ssd::Lpn page) const { return streams == 2 && page >= hot ? 1 : 0; }
  ssd::Lpn operator()(std::mt19937& random) const {
    const bool is_hot = random() < static_cast<uint64_t>(heat.writes * 0x1p32);
    const uint64_t draw = random();
    return is_hot ? static_cast<ssd::Lpn>(draw * hot >> 32)
                  : hot + static_cast<ssd::Lpn>(draw * (user - hot) >> 32);
  }
};

struct Mix {
  double spare;
  TwoTemperatures heat;
  double mixed, split;  // as published
};

class TwoHeats : public ::testing::TestWithParam<Mix> {};

TEST_P(TwoHeats, FifoIsWithinTwoPercentOfTheFormula) {
  const Mix& mix = GetParam();
  constexpr uint32_t kUser = 1 << 17;
  const Device device(kUser, mix.spare, 256, 1);
  const double waf = measured_waf<ssd::Fifo>(device, 10, 5, HotAndColdDraw{kUser, mix.heat, 1});
  const double expected = model::mixed_fifo_waf(device.alpha, mix.heat);
  EXPECT_NEAR(waf / expected, 1, 0.02) << waf << " beside " << expected;
  EXPECT_NEAR(model::mixed_fifo_waf(1 + mix.spare, mix.heat), mix.mixed, 0.001);
}

TEST_P(TwoHeats, ASplitSpareIsWithinTwoPercentOfTheBestSplit) {
  const Mix& mix = GetParam();
  constexpr uint32_t kUser = 1 << 16;
  const Device device(kUser, mix.spare, 64, 2);
  const auto draw = HotAndColdDraw{kUser, mix.heat, 2};
  const double waf = measured_waf<ssd::SpareSplit>(device, 10, 10, draw);
  const double expected = model::split_greedy_waf(64, device.alpha, mix.heat);
  EXPECT_NEAR(waf / expected, 1, 0.02) << waf << " beside " << expected;
  EXPECT_NEAR(model::split_fifo_waf(1 + mix.spare, mix.heat), mix.split, 0.001);
}

INSTANTIATE_TEST_SUITE_P(Formula, TwoHeats,
                         ::testing::Values(Mix{0.07, {0.9, 0.1}, 8.866, 3.271},
                                           Mix{0.15, {0.9, 0.1}, 4.957, 1.930},
                                           Mix{0.28, {0.9, 0.1}, 3.296, 1.412},
                                           Mix{0.15, {0.8, 0.2}, 4.370, 2.832}));

TEST(Formulas, ReproducePublishedValues) {
  EXPECT_NEAR(model::fifo_waf(1.07), 7.817, 0.001);
  EXPECT_NEAR(model::fifo_waf(1.15), 4.016, 0.001);
  EXPECT_NEAR(model::fifo_waf(1.28), 2.481, 0.001);
  EXPECT_NEAR(model::greedy_waf(32, 1.07), 6.336, 0.001);
  EXPECT_NEAR(model::greedy_waf(64, 1.15), 3.798, 0.001);
  EXPECT_NEAR(model::greedy_waf(1024, 1.28), 2.476, 0.001);
}

TEST(Formulas, ManyChoicesAreGreedy) {
  for (const double alpha : {1.07, 1.15, 1.28})
    EXPECT_NEAR(model::d_choices_waf(64, alpha, 100'000) / model::greedy_waf(64, alpha), 1, 0.002);
}

}  // namespace
}  // namespace streamfs::lab
