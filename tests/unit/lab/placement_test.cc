// Placement policies, each beside its rules, and what they have in common.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/placement/life_table.h"
#include "lab/placement/page_times.h"
#include "lab/placement/policy.h"
#include "lab/placement/quantile_edges.h"
#include "lab/replay/replay.h"
#include "lab/replay/workload.h"
#include "lab/workload/facts.h"
#include "lab/workload/lifetimes.h"
#include "lab/workload/op_source.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

constexpr uint32_t kPlacedPages = 4096;

std::unique_ptr<PlacementPolicy> make(const std::string& name, uint32_t streams = 0) {
  WorkloadFacts facts;
  facts.footprint_pages = kPlacedPages;
  facts.peak_live_pages = kPlacedPages;
  PolicyOptions options;
  options.streams = streams;
  options.pages_per_block = 16;
  auto policy = make_placement(name, options, facts);
  EXPECT_TRUE(policy.ok()) << name;
  return *std::move(policy);
}

// A request of `pages` pages, its page number `place`, at `address`.
PageWrite write_at(uint32_t address, uint32_t place = 0, uint32_t pages = 1) {
  PageWrite write{};
  write.page = address % kPlacedPages;
  write.address = address;
  write.request_first = address - place;
  write.request_pages = pages;
  write.death = kNever;
  return write;
}

TEST(Dac, RewritesRaiseAndCopiesLower) {
  const auto dac = make("dac");
  PageWrite prefill = write_at(1);
  prefill.prefill = true;
  EXPECT_EQ(dac->for_write(prefill, 0), 0);
  for (const int level : {0, 1, 2, 3, 4, 5, 5}) EXPECT_EQ(dac->for_write(write_at(1), 1), level);
  EXPECT_EQ(dac->for_copy(1, 5, 8), 4);
  dac->trimmed(1, 9);
  EXPECT_EQ(dac->for_write(write_at(1), 9), 5);
  for (const int level : {4, 3, 2, 1, 0, 0}) EXPECT_EQ(dac->for_copy(1, 0, 10), level);
  EXPECT_EQ(make("dac", 3)->classes(), 3);
}

TEST(SepBit, ComparesWithTheLifespanOfCollectedBlocks) {
  const auto sepbit = make("sepbit");
  EXPECT_EQ(sepbit->for_write(write_at(1), 0), 1);
  EXPECT_EQ(sepbit->for_write(write_at(1), 1000), 0) << "the lifespan is infinite at first";
  for (int i = 0; i < 16; ++i) sepbit->collected(0, 2000, 2100);  // ℓ = 100
  EXPECT_EQ(sepbit->for_write(write_at(1), 1099), 0);
  sepbit->trimmed(1, 1100);
  EXPECT_EQ(sepbit->for_write(write_at(1), 1199), 1);
  EXPECT_EQ(sepbit->for_copy(1, 0, 1200), 2);
  EXPECT_EQ(sepbit->for_copy(1, 1, 1199 + 399), 3);
  EXPECT_EQ(sepbit->for_copy(1, 3, 1199 + 400), 4);
  EXPECT_EQ(sepbit->for_copy(1, 4, 1199 + 1600), 5);
}

TEST(AutoStreamSfr, CountsWritesOfChunksThatFadeAndFollowsSequences) {
  const auto sfr = make("autostream-sfr");
  EXPECT_EQ(sfr->classes(), 6);
  EXPECT_EQ(sfr->for_copy(0, 0, 0), 5);
  uint64_t clock = 0;
  std::vector<int> streams;
  for (int i = 0; i < 60; ++i) streams.push_back(sfr->for_write(write_at(0), clock++));
  EXPECT_EQ(streams[0], 0);
  EXPECT_EQ(streams[1], 0);
  EXPECT_EQ(streams[2], 1);  // ⌊ln 3⌋
  EXPECT_EQ(streams[59], 4);
  EXPECT_EQ(sfr->for_write(write_at(600), clock++), 0) << "another chunk";
  EXPECT_EQ(sfr->for_write(write_at(0), clock++), 4);
  EXPECT_EQ(sfr->for_write(write_at(1), clock++), 4) << "continues";
  EXPECT_EQ(sfr->for_write(write_at(2000), clock++), 0);
  EXPECT_EQ(sfr->for_write(write_at(0), clock + 6 * 16384), 0) << "62 writes fade to none";
}

TEST(AutoStreamMq, HotChunksRiseAndExpiredOnesSink) {
  const auto mq = make("autostream-mq");
  ssd::FrontierId hot = 0;
  for (uint64_t i = 0; i < 60; ++i) hot = mq->for_write(write_at(0), i);
  EXPECT_EQ(hot, 4);
  for (uint32_t i = 0; i < 60; ++i) (void)mq->for_write(write_at(256 * (1 + i)), 60 + i);
  // Expired long ago and demoted at each step, but its writes are counted still.
  EXPECT_EQ(mq->for_write(write_at(0), 200), 4);
  EXPECT_EQ(mq->for_write(write_at(1, 1, 2), 201), 4) << "the rest of a request follows";
}

TEST(AutoStreamMq, ChunksShrinkWithTheDevice) {
  // 256 pages ÷ 16.
  for (const auto& [scale, stream] : {std::pair{1u, 4}, {16u, 0}}) {
    PolicyOptions options;
    options.scale = scale;
    const auto mq = *make_placement("autostream-mq", options, {});
    for (uint64_t i = 0; i < 60; ++i) (void)mq->for_write(write_at(0), i);
    EXPECT_EQ(mq->for_write(write_at(16), 60), stream) << scale;
  }
}

TEST(AutoStreamSfr, ChunksAndFadingShrinkWithTheDevice) {
  PolicyOptions options;
  options.scale = 16;
  const auto sfr = *make_placement("autostream-sfr", options, {});
  for (uint64_t i = 0; i < 60; ++i) (void)sfr->for_write(write_at(0), i);
  EXPECT_EQ(sfr->for_write(write_at(32), 60), 0) << "another chunk";
  EXPECT_EQ(sfr->for_write(write_at(0), 60 + 6 * 1024), 0) << "60 writes fade to none";
}

TEST(Warcip, KeepsIntervalsOfOneKindTogether) {
  const auto warcip = make("warcip");
  EXPECT_EQ(warcip->classes(), 6);
  EXPECT_EQ(warcip->for_copy(7, 0, 0), 5);
  std::vector<ssd::FrontierId> quick, slow;
  uint64_t clock = 0;
  for (int round = 0; round < 40; ++round) {
    for (uint32_t page = 100; page < 1000; ++page) {
      slow.push_back(warcip->for_write(write_at(page), clock++));
      for (uint32_t hot = 0; hot < 3; ++hot)
        quick.push_back(warcip->for_write(write_at(hot), clock++));
    }
  }
  const auto settled = [](const std::vector<ssd::FrontierId>& answers) {
    std::vector<ssd::FrontierId> last(answers.end() - 900, answers.end());
    std::ranges::sort(last);
    return last[450];
  };
  EXPECT_NE(settled(quick), settled(slow));
}

TEST(LifeTable, CountsTheLivingForAsLongAsTheyWereSeenToLive) {
  LifeTable table;
  for (uint64_t i = 0; i < 1000; ++i) table.born(i);
  for (uint64_t i = 0; i < 500; ++i) table.died(i, i + 100);
  table.learn();
  const double only_the_dead = table.lifetime().log2_life;
  table.count_living(LifeTable::kEpochPages);
  table.learn();
  EXPECT_GT(table.lifetime().log2_life, only_the_dead + 3);
  EXPECT_NEAR(table.left_at(4000).log2_life, std::log2(LifeTable::kEpochPages / 2), 2);
  EXPECT_LT(LifeTable{}.lifetime().log2_life, 0);
}

TEST(QuantileEdges, CutEqualShares) {
  QuantileEdges edges(4);
  for (int i = 0; i < 10'000; ++i) edges.add(i * 20.0 / 10'000, 1);
  edges.learn();
  EXPECT_EQ(edges.class_of(4), 0);
  EXPECT_EQ(edges.class_of(6), 1);
  EXPECT_EQ(edges.class_of(14), 2);
  EXPECT_EQ(edges.class_of(16), 3);
}

TEST(PageTimes, StayExactToAShareOfTheClockBeyondAWord) {
  PageTimes times(2);
  EXPECT_FALSE(times.known(0));
  times.set(0, 12'345);
  EXPECT_EQ(times.since(0, 12'400), 55u);
  const uint64_t late = (uint64_t{1} << 34) + 5;
  times.set(1, late);
  EXPECT_NEAR(static_cast<double>(times.at(1)), static_cast<double>(late), 16);
  EXPECT_NEAR(static_cast<double>(times.at(0)), 12'345, 16);
  times.forget(0);
  EXPECT_FALSE(times.known(0));
}

PageOp op_at(uint32_t page, uint32_t place, uint32_t pages, uint32_t context) {
  PageOp op;
  op.page = op.address = page;
  op.request_first = page - place;
  op.request_pages = pages;
  op.context = context;
  return op;
}

// Three logs that turn at different speeds, each with a context; now and then one trims a page.
std::vector<PageOp> logs(uint32_t writes) {
  std::vector<PageOp> ops;
  uint32_t cursor[3] = {};
  std::mt19937 random(9);
  for (uint32_t i = 0; i < writes; ++i) {
    const auto draw = static_cast<uint32_t>(random() % 10);
    const uint32_t log = draw < 6 ? 0 : draw < 9 ? 1 : 2;
    const uint32_t size = log == 2 ? 2048 : 1024;
    ops.push_back(op_at(log * 1024 + cursor[log]++ % size, 0, 1, 1 + log));
    if (i % 1000 != 999) continue;
    ops.push_back(ops.back());
    ops.back().kind = OpKind::kTrim;
  }
  return ops;
}

// A log whose every append of four pages starts with the last page of the one before, as a database
// writes it, beside pages rewritten at random. No contexts.
std::vector<PageOp> appends(uint32_t writes) {
  std::vector<PageOp> ops;
  std::mt19937 random(9);
  for (uint32_t start = 0; ops.size() < writes; start = (start + 3) % 3000) {
    for (uint32_t place = 0; place < 4; ++place) ops.push_back(op_at(start + place, place, 4, 0));
    const auto other = static_cast<uint32_t>(3004 + random() % 1000);
    if (random() % 4 == 0) ops.push_back(op_at(other, 0, 1, 0));
  }
  return ops;
}

double waf_of(std::vector<PageOp> ops, const std::string& placement, bool host_only) {
  Workload workload = Workload::from(std::move(ops), kPlacedPages);
  ReplayOptions options;
  options.placement = placement;
  options.policy.host_only = host_only;
  options.policy.pages_per_block = 16;
  options.warmup = 0.5;
  const Result<ReplayResult> result = replay(workload, options);
  EXPECT_TRUE(result.ok()) << placement << ": " << result.error().message();
  return result.ok() ? result->waf() : 0;
}

TEST(Placements, EveryOneRunsInTheDeviceAndOnTheHostOrSaysWhyNot) {
  const double nosep = waf_of(logs(150'000), "nosep", false);
  EXPECT_GT(nosep, 1.3);
  for (const std::string& name : placement_names()) {
    EXPECT_LE(waf_of(logs(150'000), name, false), nosep * 1.05) << name;
    Workload workload = Workload::from(logs(20'000), kPlacedPages);
    ReplayOptions options;
    options.placement = name;
    options.policy.host_only = true;
    options.policy.pages_per_block = 16;
    const Result<ReplayResult> host_only = replay(workload, options);
    const bool needs_copies = name == "sepgc" || name == "sepbit" || name == "dac" ||
                              name == "tags-aged" || name == "legacy" || name == "emmc" ||
                              name.starts_with("vstream");
    EXPECT_EQ(host_only.ok(), !needs_copies) << name;
    if (needs_copies) {
      EXPECT_EQ(host_only.error().code, EINVAL);
    }
  }
}

TEST(Placements, LifetimesByContextSeparateLogs) {
  const double nosep = waf_of(logs(150'000), "nosep", true);
  const double table = waf_of(logs(150'000), "lifetime-table", true);
  EXPECT_LT(table - 1, (nosep - 1) * 0.1);
}

TEST(Placements, TheEndOfARequestTellsThePageThatTheNextOneRewrites) {
  const double nosep = waf_of(appends(150'000), "nosep", true);
  const double table = waf_of(appends(150'000), "lifetime-table", true);
  EXPECT_LT(table - 1, (nosep - 1) * 0.5);
}

// A second simulator, as plain as can be, that shares nothing with the FTL: greedy (of equals the
// one longest so), host-only, classes given for each write. Returns NAND ÷ host pages.
class PlainSimulator {
 public:
  PlainSimulator(size_t blocks, size_t pages_per_block)
      : pages_per_block_(pages_per_block), blocks_(blocks) {
    for (size_t i = 0; i < blocks; ++i) free_.push_back(i);
  }

  double waf(const std::vector<ssd::Lpn>& writes, const std::vector<size_t>& classes) {
    for (size_t i = 0; i < writes.size(); ++i) {
      open(classes[i]);
      while (free_.size() <= 2) collect();
      if (const auto old = place_.find(writes[i]); old != place_.end()) {
        std::erase(blocks_[old->second].alive, writes[i]);
        blocks_[old->second].changed = ++steps_;
      }
      put(writes[i], classes[i]);
    }
    return static_cast<double>(programmed_) / static_cast<double>(writes.size());
  }

 private:
  struct Block {
    std::vector<ssd::Lpn> alive;
    size_t written = 0, own_class = 0, changed = 0;
  };

  void open(size_t own_class) {
    if (open_.contains(own_class)) return;
    open_[own_class] = free_.front();
    blocks_[free_.front()].own_class = own_class;
    free_.pop_front();
  }
  void put(ssd::Lpn page, size_t own_class) {
    open(own_class);
    const size_t index = open_[own_class];
    Block& block = blocks_[index];
    block.alive.push_back(page);
    place_[page] = index;
    ++programmed_;
    if (++block.written < pages_per_block_) return;
    closed_.insert(index);
    block.changed = ++steps_;
    open_.erase(own_class);
  }
  void collect() {
    const size_t victim = *std::ranges::min_element(closed_, {}, [&](size_t i) {
      return std::pair(blocks_[i].alive.size(), blocks_[i].changed);
    });
    closed_.erase(victim);
    const Block old = std::exchange(blocks_[victim], {});
    for (const ssd::Lpn page : old.alive) put(page, old.own_class);
    free_.push_back(victim);
  }

  size_t pages_per_block_;
  std::vector<Block> blocks_;
  std::map<ssd::Lpn, size_t> place_;
  std::map<size_t, size_t> open_;  // by class
  std::deque<size_t> free_;
  std::set<size_t> closed_;
  uint64_t programmed_ = 0;
  size_t steps_ = 0;
};

TEST(Oracle, IsHonestBesideAPlainSimulator) {
  std::vector<PageOp> ops = logs(60'000);
  std::erase_if(ops, [](const PageOp& op) { return op.kind == OpKind::kTrim; });
  std::mt19937 random(3);
  for (size_t i = 0; i < ops.size(); i += 5)
    ops[i] = op_at(3072 + static_cast<uint32_t>(random() % 1024), 0, 1, 0);
  std::vector<ssd::Lpn> writes;
  for (const PageOp& op : ops) writes.push_back(op.page);
  std::vector<uint64_t> death(writes.size(), kNever);
  std::map<ssd::Lpn, size_t> newest;
  for (size_t i = 0; i < writes.size(); ++i) {
    if (newest.contains(writes[i])) death[newest[writes[i]]] = i;
    newest[writes[i]] = i;
  }
  // The log2 edges: one block, two, four, ...
  std::vector<size_t> classes;
  for (size_t i = 0; i < writes.size(); ++i) {
    size_t own_class = 0;
    while (own_class < 9 && (death[i] == kNever || death[i] - i >= 16u << own_class)) ++own_class;
    classes.push_back(own_class);
  }
  Workload workload = Workload::from(std::move(ops), kPlacedPages);
  ReplayOptions options;
  options.placement = "oracle-host";
  options.edges = "log2";
  options.policy.pages_per_block = 16;
  const Result<ReplayResult> result = replay(workload, options);
  ASSERT_TRUE(result.ok());
  const double plain = PlainSimulator(result->physical_pages / 16, 16).waf(writes, classes);
  EXPECT_GT(plain, 1.01);
  EXPECT_DOUBLE_EQ(result->waf(), plain) << result->waf() << " beside " << plain;
}

TEST(Placements, HostOnlyCopiesGoWhereTheDeviceWants) {
  WorkloadFacts facts;
  facts.footprint_pages = kPlacedPages;
  PolicyOptions options;
  options.host_only = true;
  const auto policy = [&](std::optional<ssd::GcMode> mode) {
    options.gc_mode = mode;
    return *make_placement("autostream-sfr", options, facts);
  };
  EXPECT_EQ(policy({})->classes(), 5);
  EXPECT_EQ(policy({})->for_copy(1, 3, 0), 3);
  EXPECT_EQ(policy(ssd::GcMode::kShared)->classes(), 6);
  EXPECT_EQ(policy(ssd::GcMode::kShared)->for_copy(1, 3, 0), 5);
  EXPECT_EQ(policy(ssd::GcMode::kOwnFrontier)->classes(), 10);
  EXPECT_EQ(policy(ssd::GcMode::kOwnFrontier)->for_copy(1, 8, 0), 8);
}

TEST(Placements, TheNumberOfStreamsIsAnOption) {
  EXPECT_EQ(make("warcip", 3)->host_classes(), 3);
  EXPECT_EQ(make("lifetime-table", 4)->host_classes(), 4);
  EXPECT_EQ(make("autostream-mq", 7)->host_classes(), 7);
  PolicyOptions options;
  options.streams = ssd::kMaxStreams;
  EXPECT_EQ(make_placement("tags", options, {}).error().code, EINVAL);
}

}  // namespace
}  // namespace streamfs::lab
