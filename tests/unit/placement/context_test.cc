#include "fuse-fs/placement/context.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "tests/unit/placement/memory_store.h"

namespace streamfs::placement {
namespace {

TEST(Context, WorkersOfOnePoolAreOne) {
  EXPECT_EQ(fold_comm("kworker/3"), "kworker");
  EXPECT_EQ(fold_comm("pool-thread-12"), "pool-thread-");
  EXPECT_EQ(fold_comm("rocksdb:low12"), "rocksdb_low");
  EXPECT_EQ(fold_comm("123"), "");
}

TEST(Context, NumbersInNamesAreOne) {
  EXPECT_EQ(fold_extension("000012.log"), "log");
  EXPECT_EQ(fold_extension("base.0012"), "#");
  EXPECT_EQ(fold_extension("16384"), "#");
  EXPECT_EQ(fold_extension(".bashrc"), "");
  EXPECT_EQ(fold_extension("README"), "");
  EXPECT_EQ(fold_directory("data-0012-x7"), "data-#-x#");
}

TEST(Context, NamesFitAndStayDistinct) {
  const Context a{"a-very-long-comm", "ext", "directory-of-one"};
  const Context b{"a-very-long-comm", "ext", "directory-of-two"};
  EXPECT_LE(context_name(a).size(), kNameMax);
  EXPECT_NE(context_name(a), context_name(b));
  EXPECT_EQ(parse_context_name("ctx:cc:o:build"), (Context{"cc", "o", "build"}));
  EXPECT_EQ(parse_context_name(context_name(a)), (Context{"a-very-long-comm", {}, "e"}))
      << "an extension that was cut is none";
}

TEST(Context, ProgramsThatCopyTreesShareOne) {
  EXPECT_EQ(context_of("cp", "a.gz", "man1"), (Context{std::string(kCopier), {}, {}}));
  EXPECT_EQ(context_of("rsync", "b", "x"), context_of("tar", "c.d", "y"));
  EXPECT_EQ(context_of("cpx", "a.gz", "man1"), (Context{"cpx", "gz", "man#"}));
}

class Contexts : public testing::Test {
 protected:
  std::unique_ptr<Placement> open(Mode mode = Mode::kAuto) {
    Placement::Options options;
    options.mode = mode;
    options.pstream_count = 4;
    options.capacity_blocks = 1024;
    options.telemetry_capacity = 16;
    return std::move(Placement::open(store_, clock_, options)).value();
  }
  MemoryStore store_;
  ManualClock clock_;
};

TEST_F(Contexts, LabelBeatsRuleBeatsContext) {
  auto placement = open();
  EXPECT_EQ(placement->choose({"db", "x-journal", "d", VStreamId{9}}).source, Source::kDirectory);
  EXPECT_EQ(placement->choose({"db", "x-journal", "d", {}}).source, Source::kRule);
  EXPECT_EQ(placement->choose({"db", "x.db", "d", {}}).source, Source::kContext);
  EXPECT_EQ(placement->choose({"", "x", "", {}}).source, Source::kDefault);
}

TEST_F(Contexts, ModesIgnoreWhatTheySay) {
  EXPECT_EQ(open(Mode::kLearned)->choose({"db", "x-journal", "d", VStreamId{9}}).source,
            Source::kContext);
  EXPECT_EQ(open(Mode::kOff)->choose({"db", "x-journal", "d", VStreamId{9}}).vstream,
            kDefaultVStream);
}

TEST_F(Contexts, ProfilesOfTheFolderCountAndTheirMistakesAreTold) {
  std::string folder = (std::filesystem::temp_directory_path() / "profiles.XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/mine.toml") << "[[rule]]\nname = '*.mine'\nthread = 'flush*'\n"
                                          "vstream = 'mine'\n[[rule]]\nname = 7\n";
  Placement::Options options;
  options.capacity_blocks = 1024;
  options.telemetry_capacity = 16;
  options.profiles_folder = folder;
  auto placement = std::move(Placement::open(store_, clock_, options)).value();
  EXPECT_EQ(placement->complaints(),
            std::vector{folder + "/mine.toml:6:8: a value is a string, true, false or an array of "
                                 "strings"});
  const Chosen chosen = placement->choose({"flusher", "a.mine", "d", {}});
  EXPECT_EQ(chosen.source, Source::kRule);
  EXPECT_EQ(placement->describe(chosen.vstream), "mine");
  EXPECT_EQ(placement->choose({"other", "a.mine", "d", {}}).source, Source::kContext);
  options.profile = "none-such";
  EXPECT_EQ(Placement::open(store_, clock_, options).error().code, EINVAL);
  options.profile = "rocksdb";
  placement = std::move(Placement::open(store_, clock_, options)).value();
  EXPECT_EQ(placement->choose({"db", "x-journal", "d", {}}).source, Source::kContext);
  std::filesystem::remove_all(folder);
}

TEST_F(Contexts, OneContextIsOneVStreamAcrossMounts) {
  auto before = open();
  const VStreamId v =
      before->choose({"postgres", "pg_stat.stat", "a-rather-long-directory", {}}).vstream;
  const VStreamId named = *before->by_name("mine", Source::kHint);
  const VStreamId number = *before->by_number(7);
  before->tick();
  before.reset();
  auto after = open();
  EXPECT_EQ(after->choose({"postgres", "pg_stat.stat", "a-rather-long-directory", {}}).vstream, v);
  EXPECT_EQ(after->by_name("mine", Source::kHint).value(), named);
  EXPECT_EQ(after->describe(number), "7");
  EXPECT_EQ(after->describe(named), "mine");
  EXPECT_EQ(after->info(named)->source, Source::kHint);
  const uint64_t stores = store_.stores;
  after->tick();
  EXPECT_EQ(store_.stores, stores) << "nothing changed, nothing is stored again";
}

TEST_F(Contexts, BadNamesAndNumbersAreRefused) {
  auto placement = open();
  EXPECT_EQ(placement->by_name("", Source::kHint).error().code, EINVAL);
  EXPECT_EQ(placement->by_name(std::string(32, 'x'), Source::kHint).error().code, EINVAL);
  EXPECT_TRUE(placement->by_name(std::string(31, 'x'), Source::kHint).ok());
  EXPECT_EQ(placement->by_number(0).error().code, ERANGE);
  EXPECT_EQ(placement->by_number(65536).error().code, ERANGE);
  EXPECT_EQ(placement->by_rw_hint(6).error().code, EINVAL);
  EXPECT_EQ(parse_mode("sometimes").error().code, EINVAL);
}

TEST_F(Contexts, AFullTableSaysSo) {
  auto placement = open();
  for (uint32_t n = 1; n <= 65535; ++n) ASSERT_TRUE(placement->by_number(n).ok());
  EXPECT_EQ(placement->by_name("one-more", Source::kHint).error().code, ENOSPC);
}

}  // namespace
}  // namespace streamfs::placement
