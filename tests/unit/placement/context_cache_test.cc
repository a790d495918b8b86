#include "fuse-fs/placement/context_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"
#include "base/wire/telemetry.h"
#include "fuse-fs/placement/vstream_table.h"
#include "tests/unit/placement/memory_store.h"
#include "tests/unit/placement/published_model.h"

namespace streamfs::placement {
namespace {

constexpr VStreamId kProgram{100};

ContextSeen program(std::string comm) {
  ContextSeen out{kProgram, kProgram, Context{std::move(comm), {}, {}}, {}};
  return out;
}

// A context of the program that wrote a million pages, each of which lived so long.
ContextSeen part(uint16_t number, std::string ext, std::string dir, double lifetime) {
  ContextSeen out{VStreamId{number}, kProgram, Context{"db", std::move(ext), std::move(dir)}, {}};
  out.seen.written_pages = 1000000;
  out.seen.deaths = 1000000;
  out.seen.exposure = lifetime * out.seen.deaths;
  return out;
}

using ContextList = std::vector<Context>;

ContextList split_off(const std::vector<ContextSeen>& contexts) {
  ContextList out;
  for (ContextSplit& each : contexts_to_split(contexts)) out.push_back(std::move(each.context));
  return out;
}

TEST(Split, LikeLifetimesStayTogether) {
  EXPECT_EQ(split_off({program("db"), part(1, "log", "a", 100), part(2, "dat", "a", 190)}),
            ContextList{});
}

TEST(Split, WhatLivesTwiceAsLongAsTheRestIsSplitOff) {
  const auto found = split_off({program("db"), part(1, "log", "a", 100), part(2, "dat", "a", 210)});
  ASSERT_EQ(found.size(), 1U) << "the other one is the rest";
  EXPECT_EQ(found[0], (Context{"db", "dat", {}}));
}

TEST(Split, AnExtensionComesBeforeItsDirectories) {
  const auto found = split_off({program("db"), part(1, "log", "a", 100), part(2, "log", "b", 110),
                                part(3, "dat", "a", 9000), part(4, "dat", "b", 9900)});
  EXPECT_EQ(found, (ContextList{{"db", "dat", {}}})) << "the others are the rest";
  // Files without an extension have only their directory to be told by.
  EXPECT_EQ(split_off({program("db"), part(1, "", "wal", 100), part(2, "", "base", 9000)}),
            (ContextList{{"db", {}, "wal"}}));
}

TEST(Split, ADirectoryIsSplitFromItsExtension) {
  ContextSeen whole = part(9, "dat", "", 0);
  whole.shown = whole.vstream;
  whole.seen = {};
  ContextSeen a = part(1, "dat", "a", 100), b = part(2, "dat", "b", 1000);
  a.shown = b.shown = whole.vstream;
  EXPECT_EQ(split_off({program("db"), whole, a, b}), (ContextList{{"db", "dat", "a"}}));
}

TEST(Split, LittleWrittenOrNothingDeadSaysNothing) {
  ContextSeen little = part(1, "log", "a", 100), much = part(2, "dat", "a", 9000);
  little.seen.written_pages = much.seen.written_pages = kEarnedPages - 1;
  EXPECT_EQ(split_off({program("db"), little, much}), ContextList{});
  ContextSeen alive = part(1, "log", "a", 0), other = part(2, "dat", "a", 0);
  alive.seen.deaths = other.seen.deaths = 0;
  alive.seen.exposure = 1e12;
  EXPECT_EQ(split_off({program("db"), alive, other}), ContextList{});
}

TEST(Split, WhatLivesOnIsToldFromWhatDies) {
  ContextSeen alive = part(1, "dat", "a", 0);
  alive.seen.deaths = 0;
  alive.seen.exposure = 1e9;
  EXPECT_EQ(split_off({program("db"), alive, part(2, "log", "a", 100)}).size(), 1U);
}

TEST(Evict, TheLeastRecentlyWrittenOfItsOwnerGoesFirst) {
  ContextSeen old = part(1, "a", "x", 1), young = part(2, "b", "x", 1),
              other = part(3, "c", "x", 1);
  old.last_written = 5;
  young.last_written = 6;
  other.owner = 7;
  EXPECT_EQ(contexts_to_evict({program("db"), young, other, old}, 0, 9),
            (std::vector{VStreamId{1}, VStreamId{2}}));
  EXPECT_EQ(contexts_to_evict({program("db"), young, other, old}, 0, 1), std::vector{VStreamId{1}});
  EXPECT_EQ(contexts_to_evict({program("db"), young, other, old}, 7, 9), std::vector{VStreamId{3}});
}

TEST(Evict, LiveDataAndEarnedVStreamsGoLast) {
  ContextSeen alive = part(1, "a", "x", 1), dead = part(2, "b", "x", 1),
              earned = part(3, "c", "x", 1);
  ContextSeen earned_alive = part(4, "d", "x", 1);
  alive.seen.live_pages = earned_alive.seen.live_pages = 1;
  dead.last_written = 9;
  earned.shown = earned.vstream;
  earned_alive.shown = earned_alive.vstream;
  EXPECT_EQ(contexts_to_evict({program("db"), earned, earned_alive, alive, dead}, 0, 9),
            (std::vector{VStreamId{2}, VStreamId{1}, VStreamId{3}}));
  EXPECT_EQ(contexts_to_evict({program("db")}, 0, 9), std::vector{kProgram});
}

class ContextCache : public testing::Test {
 protected:
  static constexpr uint64_t kCapacity = 1 << 16;
  ContextCache() { open(); }
  void open() {
    Placement::Options options;
    options.pstream_count = 4;
    options.capacity_blocks = kCapacity;
    options.telemetry_capacity = 16;
    placement_.reset();
    placement_ = std::move(Placement::open(store_, clock_, options)).value();
  }
  static std::string word(int i) {  // digits would fold into one
    std::string out = "d";
    for (int n = i; n > 0; n /= 26) out += static_cast<char>('a' + n % 26);
    return out;
  }
  Chosen create(std::string_view comm, std::string_view name, std::string_view dir,
                uint32_t uid = 0) {
    return placement_->choose({comm, name, dir, {}, uid});
  }
  void write(VStreamId v, uint64_t first, uint32_t pages) {
    placement_->wrote({v, pages, 0, pages, BlockNo{first}}, kDefaultPStream, 0);
  }
  static std::vector<wire::TelemetryRecord> telemetry(const Placement::SharedMemory& memory) {
    std::vector<wire::TelemetryRecord> out;
    auto* bytes = static_cast<std::byte*>(
        ::mmap(nullptr, memory.telemetry_bytes, PROT_READ, MAP_SHARED, memory.telemetry_fd, 0));
    const auto* header = reinterpret_cast<const wire::TelemetryHeader*>(bytes);
    const std::byte* at = bytes + sizeof(*header);
    for (uint32_t ring = 0; ring < header->ring_count; ++ring) {
      const auto* its = reinterpret_cast<const wire::TelemetryRingHeader*>(at);
      const auto* slots = reinterpret_cast<const wire::TelemetryRecord*>(at + sizeof(*its));
      out.insert(out.end(), slots, slots + its->head);
      at += sizeof(*its) + header->capacity * sizeof(wire::TelemetryRecord);
    }
    ::munmap(bytes, memory.telemetry_bytes);
    return out;
  }
  std::string shown(VStreamId v) { return placement_->describe(placement_->shown(v)); }
  // A log that is written over and over, and tables that stay, by one program.
  void run_database(VStreamId log, VStreamId tables) {
    write(tables, 4096, 1024);
    for (int i = 0; i < 64; ++i) write(log, static_cast<uint64_t>(i) % 4 * 64, 64);
    placement_->tick();
  }

  MemoryStore store_;
  ManualClock clock_;
  std::unique_ptr<Placement> placement_;
};

TEST_F(ContextCache, AContextIsItsProgramsUntilItsLifetimeDiffers) {
  const VStreamId log = create("db", "1.log", "wal").vstream;
  const VStreamId tables = create("db", "t.dat", "base").vstream;
  EXPECT_NE(log, tables) << "each is measured by itself";
  EXPECT_EQ(shown(log), "ctx:db::");
  EXPECT_EQ(shown(tables), "ctx:db::");
  EXPECT_EQ(placement_->all().size(), 2U) << "the default one and the program's";
  run_database(log, tables);
  EXPECT_EQ(shown(log) == "ctx:db::", shown(tables) != "ctx:db::");
  const auto info = placement_->info(log);
  EXPECT_EQ(info->written_bytes, 64U * 64 * kBlockSize);
  EXPECT_EQ(placement_->info(tables)->live_bytes, 1024U * kBlockSize);
  EXPECT_EQ(shown(create("db", "2.log", "other").vstream), shown(log)) << "by its extension";
}

TEST_F(ContextCache, WhatWasEarnedIsThereAtTheNextMount) {
  const Chosen log = create("db", "1.log", "wal"), tables = create("db", "t.dat", "base");
  run_database(log.vstream, tables.vstream);
  const std::string before = shown(log.vstream), other = shown(tables.vstream);
  open();
  EXPECT_EQ(placement_->current(log.vstream, log.generation), log.vstream);
  EXPECT_EQ(shown(log.vstream), before);
  EXPECT_EQ(shown(tables.vstream), other);
}

TEST_F(ContextCache, ContextsOfAnEarlierVersionAreShownAsTheirPrograms) {
  const VStreamId old{0x4005};
  ASSERT_TRUE(store_.store(3, {old, Source::kContext, "ctx:db:log:wal", 4096, 7, 9}).ok());
  open();
  EXPECT_EQ(placement_->current(old, 0), old);
  EXPECT_EQ(shown(old), "ctx:db::");
  EXPECT_EQ(create("db", "2.log", "wal").vstream, old);
}

TEST_F(ContextCache, ALongNameEarnsItsVStreamAfterARemountToo) {
  constexpr const char* kLong = "a-directory-with-a-long-name";
  VStreamId log = create("database", "1.log", kLong).vstream;
  const VStreamId tables = create("database", "t", "another-directory-with-one").vstream;
  placement_->tick();
  open();
  log = create("database", "1.log", kLong).vstream;
  run_database(log, tables);
  run_database(log, tables);
  EXPECT_NE(shown(log), shown(tables));
  EXPECT_TRUE(placement_->shown(log) == log || placement_->shown(tables) == tables ||
              shown(log) == "ctx:database:log:");
  EXPECT_LE(placement_->all().size(), 3U) << "no vStream that nothing is written to";
}

TEST_F(ContextCache, AYoungVStreamIsPlacedAsWhatItWasSplitFrom) {
  Placement::SharedMemory memory = placement_->shared_memory();
  PublishedModel model(memory.model_fd, memory.model_bytes);
  const VStreamId log = create("db", "1.log", "wal").vstream;
  const VStreamId tables = create("db", "t.dat", "base").vstream;
  write(tables, 0, 1);
  model.publish(1, [](uint32_t) { return 2; });
  model.buffer(1).clock_pages = 1;
  placement_->tick();
  run_database(log, tables);
  ASSERT_NE(shown(log), shown(tables));
  EXPECT_EQ(placement_->plain_route(log).value, 2);
  EXPECT_EQ(placement_->plain_route(tables).value, 2);
}

TEST_F(ContextCache, ManyContextsDisplaceTheOldestOfTheSameOwnerOnly) {
  const Chosen others = create("db", "1.log", "wal", 7);
  const Chosen first = create("cc", "a.o", "first");
  for (int i = 0; i < 9000; ++i) ASSERT_EQ(create("cc", "a.o", word(i)).source, Source::kContext);
  EXPECT_EQ(create("db", "2.log", "wal", 7).vstream, others.vstream);
  EXPECT_NE(create("cc", "a.o", "first").vstream, first.vstream) << "it was given up";
  EXPECT_EQ(placement_->all().size(), 3U) << "the default one and two programs'";
}

TEST_F(ContextCache, DataOfAContextGivenUpStaysItsPrograms) {
  const Chosen kept = create("cc", "a.o", "first");
  write(kept.vstream, 0, 16);
  std::set<uint16_t> numbers;
  for (int i = 0; i < 70000; ++i) {
    const VStreamId v = create("cc", "a.o", word(i)).vstream;
    numbers.insert(v.value);
    if (i < 2000) write(v, static_cast<uint64_t>(i + 1) * 16, 1);  // more than may be known
  }
  EXPECT_NE(create("cc", "a.o", "first").vstream, kept.vstream) << "it was given up";
  EXPECT_EQ(placement_->current(kept.vstream, kept.generation), kept.vstream);
  EXPECT_FALSE(numbers.contains(kept.vstream.value)) << "its number is in use";
  EXPECT_EQ(shown(kept.vstream), "ctx:cc::");
  EXPECT_EQ(placement_->info(kept.vstream)->live_bytes, 2016U * kBlockSize) << "as are others";
}

TEST_F(ContextCache, ANumberThatIsGivenAgainHasALaterGeneration) {
  const Chosen before = create("cc", "a.o", "first");
  Chosen again;
  for (int i = 0; again.vstream != before.vstream && i < 70000; ++i) {
    again = create("cc", "a.o", word(i));
    ASSERT_GE(again.vstream.value, VStreamTable::kFirstNamed);
    ASSERT_LT(again.vstream.value, VStreamTable::kContextsEnd);
  }
  ASSERT_EQ(again.vstream, before.vstream);
  EXPECT_NE(again.generation, before.generation);
  EXPECT_EQ(placement_->current(before.vstream, before.generation), kDefaultVStream);
  EXPECT_EQ(placement_->current(again.vstream, again.generation), again.vstream);
}

TEST_F(ContextCache, WhatWasGivenUpHasNoSlotAtTheNextMount) {
  for (int i = 0; i < 9000; ++i) {
    (void)create("cc", "a.o", word(i));
    if (i % 64 == 0) placement_->tick();
  }
  for (int i = 0; i < 16; ++i) placement_->tick();
  std::set<uint16_t> numbers;
  std::set<std::string> names;
  for (const SavedVStream& saved : store_.load()) {
    if (saved.vstream == kDefaultVStream) continue;
    EXPECT_TRUE(numbers.insert(saved.vstream.value).second);
    EXPECT_TRUE(names.insert(saved.name).second);
  }
  EXPECT_LE(numbers.size(), VStreamTable::kContextsOfOwnerMax);
}

TEST_F(ContextCache, TheTableIsBoundedAndAFullOneStillAnswers) {
  for (uint32_t uid = 1; uid <= 8; ++uid) {
    for (int i = 0; i < 2000; ++i) {
      const Chosen chosen = create("p" + word(static_cast<int>(uid)), "a.o", word(i), uid);
      write(chosen.vstream, uid * 4096 + static_cast<uint64_t>(i), 1);
    }
  }
  for (int i = 0; i < 20; ++i) placement_->tick();
  const auto saved = store_.load();
  EXPECT_LE(std::ranges::count_if(
                saved, [](const SavedVStream& each) { return each.vstream != kDefaultVStream; }),
            static_cast<std::ptrdiff_t>(VStreamTable::kContextsMax));
  const Chosen known = create("p" + word(1), "a.o", word(1999), 1);
  EXPECT_EQ(known.source, Source::kContext);
  EXPECT_EQ(create("p" + word(1), "a.new", "b", 9).source, Source::kContext) << "the program's";
}

TEST_F(ContextCache, TelemetrySpeaksOfWhatIsShown) {
  const VStreamId log = create("db", "1.log", "wal").vstream;
  write(log, 0, 1);
  const Placement::SharedMemory memory = placement_->shared_memory();
  const auto records = telemetry(memory);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].vstream, placement_->shown(log).value);
  EXPECT_NE(records[0].vstream, log.value);
  EXPECT_EQ(records[0].generation, placement_->info(log)->generation);
}

TEST_F(ContextCache, AContextThatIsNamedIsNoPartOfTheCache) {
  const Chosen log = create("db", "1.log", "wal");
  const VStreamId named = *placement_->by_name("ctx:db:log:wal", Source::kHint);
  EXPECT_EQ(named, log.vstream);
  EXPECT_EQ(placement_->shown(named), named);
  for (int i = 0; i < 3000; ++i) (void)create("db", "a.o", word(i));
  EXPECT_EQ(placement_->info(named)->source, Source::kHint);
}

}  // namespace
}  // namespace streamfs::placement
