// The name rules' promises: what every rule takes, and what it must leave alone.
#include "libstream/rules.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

// The built-in rules, with one profile chosen.
struct BuiltIn {
  explicit BuiltIn(const char* profile) {
    stream_rules_clear(set.get());
    stream_rules_load_built_in(set.get());
    code = stream_rules_choose(set.get(), profile);
  }
  std::unique_ptr<stream_rules> set = std::make_unique<stream_rules>();
  int code;
};

std::string label(const char* profile, const char* path, int flags = O_RDWR | O_CREAT,
                  const char* thread = "thread") {
  const BuiltIn rules(profile);
  const stream_rule* match = stream_rules_match(rules.set.get(), path, flags, thread);
  return match == nullptr ? "" : match->vstream;
}
std::string label(const char* path) {
  return label("default", path);
}

unsigned life(const char* path) {
  const BuiltIn rules(nullptr);
  const stream_rule* match = stream_rules_match(rules.set.get(), path, O_RDWR, "thread");
  return match == nullptr ? unsigned{RWH_WRITE_LIFE_NOT_SET} : match->rw_hint;
}

TEST(Rules, SqliteFilesGetOneLabelAKind) {
  EXPECT_EQ(label("/m/a.db-journal"), "sqlite-journal");
  EXPECT_EQ(label("/m/a.db-wal"), "sqlite-wal");
  EXPECT_EQ(label("/m/a.db-shm"), "sqlite-shm");
  EXPECT_EQ(label("/m/a.db-mj3F2A10901"), "sqlite-super-journal");
  EXPECT_EQ(label("/m/etilqs_0123456789abcdef"), "sqlite-temp");
}

TEST(Rules, OtherDatabasesGetTheirs) {
  EXPECT_EQ(label("pg_wal/000000010000000000000001"), "pg-wal");
  EXPECT_EQ(label("/d/pg_wal//xlogtemp.77"), "pg-wal");
  EXPECT_EQ(label("base/pgsql_tmp/pgsql_tmp812.3"), "pg-temp");
  EXPECT_EQ(label("base/pgsql_tmp/pgsql_tmp812.0.fileset/i0of8.p0.0"), "pg-temp");
  EXPECT_EQ(label("/db/000012.log"), "rocksdb-wal");
  EXPECT_EQ(label("/db/000013.sst"), "rocksdb-sst");
  EXPECT_EQ(label("/v/#sql-ib77.ibd"), "mysql-temp");
  EXPECT_EQ(label("/v/ib_logfile0"), "mysql-redo");
  EXPECT_EQ(label("/v/#ib_redo12"), "mysql-redo");
  EXPECT_EQ(label("/v/binlog.000001"), "mysql-binlog");
  EXPECT_EQ(label("/k/topic-0/00000000000000000042.log"), "kafka-log");
}

TEST(Rules, LifetimeClassesFollowTheDefaultTable) {
  for (const char* path :
       {"etilqs_1", "a-journal", "a-mj1", "pgsql_tmp1.0", "#sql1", "000012.log"}) {
    EXPECT_EQ(life(path), unsigned{RWH_WRITE_LIFE_SHORT}) << path;
  }
  for (const char* path : {"a-wal", "a-shm", "pg_wal/1", "ib_logfile1", "#ib_redo1", "binlog.1"}) {
    EXPECT_EQ(life(path), unsigned{RWH_WRITE_LIFE_MEDIUM}) << path;
  }
  for (const char* path : {"1.sst", "00000000000000000042.log"}) {
    EXPECT_EQ(life(path), unsigned{RWH_WRITE_LIFE_LONG}) << path;
  }
}

TEST(Rules, NamesThatOnlyLookAlikeAreLeftAlone) {
  for (const char* path : {"foo.log",
                           "0001.log",
                           "00012.log",
                           "0000123.log",
                           "20240131.log",
                           "00012a.log",
                           "000012.log.1",
                           "x000012.log",
                           "0000000000000000042.log",
                           "000000000000000000042.log",
                           "journal",
                           "a.journal",
                           "a-journal.txt",
                           "a-wally",
                           "a-walk",
                           "wal",
                           "a-shmem",
                           "my_etilqs_1",
                           "etilqs",
                           "xpgsql_tmp1",
                           "pg_wal",
                           "/pg_wal/archive_status/1.ready",
                           "my_pg_wal/1",
                           "pg_wal2/1",
                           "sql#1",
                           "lib_logfile",
                           "mybinlog.1",
                           "binlog",
                           "asst",
                           "a.sst.tmp",
                           "a-mk1"}) {
    EXPECT_EQ(label(path), "") << path;
  }
}

TEST(Rules, FoldersAboveTheParentDoNotCount) {
  EXPECT_EQ(label("/a-journal/file"), "");
  EXPECT_EQ(label("/pg_wal/deeper/file"), "");
  EXPECT_EQ(label("/etilqs_1/file"), "");
}

TEST(Rules, AJournalOfAnOddlyNamedDatabaseIsAJournal) {
  EXPECT_EQ(label("a-mj.db-journal"), "sqlite-journal");
  EXPECT_EQ(label("a-mj.db-wal"), "sqlite-wal");
}

TEST(Rules, ANamelessFileIsKnownByItsFlagAlone) {
  EXPECT_EQ(label("default", "/m", O_TMPFILE | O_RDWR), "tmpfile");
  EXPECT_EQ(label("default", "/m/a-journal", O_TMPFILE | O_RDWR), "tmpfile");
  EXPECT_EQ(label("default", "/m", O_DIRECTORY), "") << "O_DIRECTORY is one bit of O_TMPFILE";
  EXPECT_EQ(label("sqlite", "/m", O_TMPFILE | O_RDWR), "");
}

TEST(Rules, AProfileKnowsItsOwnProgramOnly) {
  EXPECT_EQ(label("sqlite", "a-wal"), "sqlite-wal");
  EXPECT_EQ(label("sqlite", "000012.log"), "");
  EXPECT_EQ(label("rocksdb", "a-wal"), "");
  EXPECT_EQ(label("rocksdb", "000012.log"), "rocksdb-wal");
  EXPECT_EQ(label("rocksdb", "1234567.log"), "rocksdb-wal") << "numbers outgrow six digits";
  EXPECT_EQ(label("rocksdb", "00012.log"), "");
  EXPECT_EQ(label("postgresql", "pg_wal/1"), "pg-wal");
  EXPECT_EQ(label("postgresql", "000012.log"), "");
}

TEST(Rules, EdgesOfAPathAreHarmless) {
  EXPECT_EQ(label(""), "");
  EXPECT_EQ(label("/"), "");
  EXPECT_EQ(label("//"), "");
  EXPECT_EQ(label("a-journal/"), "");
  EXPECT_EQ(label("-journal"), "sqlite-journal");
  EXPECT_EQ(label((std::string(5000, 'x') + "-wal").c_str()), "sqlite-wal");
}

TEST(Rules, EveryProfileNamedExistsAndOthersDoNot) {
  for (const char* name : {"default", "sqlite", "rocksdb", "postgresql", "mysql", "kafka", "git",
                           "firefox", "chromium", "logs", "f2fs", "tmpfile"}) {
    EXPECT_EQ(BuiltIn(name).code, 0) << name;
  }
  EXPECT_EQ(BuiltIn("Default").code, -ENOENT);
  EXPECT_EQ(BuiltIn("").code, -ENOENT);
  EXPECT_EQ(label("none-such", "a-wal"), "") << "no rules rather than others";
}

TEST(Rules, ProgramsCachesAndRepositoriesAreKnownByTheirFolders) {
  EXPECT_EQ(label("cache2/entries/0123456789ABCDEF0123456789ABCDEF01234567"), "firefox-cache");
  EXPECT_EQ(label("entries/0123456789ABCDEF0123456789ABCDEF0123456"), "") << "39 digits";
  EXPECT_EQ(label("Cache/Cache_Data/data_1"), "chromium-cache");
  EXPECT_EQ(label("Code Cache/js/0123456789abcdef_0"), "chromium-code-cache");
  EXPECT_EQ(label("js/app.js"), "");
  EXPECT_EQ(label(".git/objects/pack/tmp_pack_x7F"), "git-pack");
  EXPECT_EQ(label(".git/index.lock"), "git-index");
  EXPECT_EQ(label("src/yarn.lock"), "");
}

TEST(Rules, WhatIsTooGeneralHoldsOnlyWhenAskedFor) {
  EXPECT_EQ(label("app.log"), "");
  EXPECT_EQ(label("logs", "app.log"), "log");
  EXPECT_EQ(label("logs", "app.log.1"), "log-rotated");
  EXPECT_EQ(label("logs", "app.log.2.gz"), "log-archive");
  EXPECT_EQ(label("logs", "catalogue"), "");
  EXPECT_EQ(label("f2fs", "a.db"), "f2fs-hot-data");
  EXPECT_EQ(label("f2fs", "a.mp4"), "f2fs-cold-data");
  EXPECT_EQ(label("f2fs", "a.txt"), "f2fs-warm-data");
  EXPECT_EQ(label("a.txt"), "");
  EXPECT_EQ(label("16384/t3_16385"), "");
  EXPECT_EQ(label("postgresql", "base/16384/t3_16385_fsm"), "pg-temp-table");
}

TEST(Rules, AFlushOfRocksdbIsKnownByItsThread) {
  EXPECT_EQ(label("default", "/db/000013.sst", O_RDWR, "rocksdb:high"), "rocksdb-l0");
  EXPECT_EQ(label("default", "/db/000013.sst", O_RDWR, "rocksdb:high1"), "rocksdb-l0");
  EXPECT_EQ(label("default", "/db/000013.sst", O_RDWR, "rocksdb:low"), "rocksdb-sst");
}

// Returns the label of a thread's output after it reads these, in order; '|' begins another merge.
std::string made_of(const std::vector<std::string>& inputs) {
  const BuiltIn rules("rocksdb");
  const char* merges = nullptr;
  for (const std::string& input : inputs) {
    const bool begins = input[0] == '|';
    merges = stream_rules_merge(rules.set.get(), merges, input.c_str() + begins, begins);
  }
  const stream_rule* match =
      stream_rules_match_merging(rules.set.get(), "/db/000013.sst", O_RDWR, "rocksdb:low3", merges);
  return match == nullptr ? "" : match->vstream;
}

TEST(Rules, ALevelOfRocksdbIsKnownByWhatItsThreadMerges) {
  EXPECT_EQ(made_of({}), "rocksdb-sst");
  EXPECT_EQ(made_of({"rocksdb-l0"}), "rocksdb-l1");
  EXPECT_EQ(made_of({"rocksdb-l0", "rocksdb-l0", "rocksdb-l1"}), "rocksdb-l1");
  EXPECT_EQ(made_of({"rocksdb-l1", "rocksdb-l2", "rocksdb-l1", "rocksdb-l2"}), "rocksdb-l2");
  EXPECT_EQ(made_of({"rocksdb-l0", "rocksdb-l1", "|rocksdb-l1"}), "rocksdb-l2") << "another merge";
  EXPECT_EQ(made_of({"rocksdb-l0", "rocksdb-l1", "rocksdb-l2"}), "rocksdb-l2")
      << "another one, though nobody said so";
  EXPECT_EQ(made_of({"rocksdb-l2", "rocksdb-l3", "rocksdb-l0"}), "rocksdb-l1");
  EXPECT_EQ(made_of({"rocksdb-l6"}), "rocksdb-l6") << "the last level is merged with itself";
  EXPECT_EQ(made_of({"rocksdb-l1", "rwh-long", "rocksdb-wal"}), "rocksdb-l2");
  EXPECT_EQ(made_of({"rocksdb-l1", "|rwh-long"}), "rocksdb-sst") << "a program's own hints";
}

TEST(Rules, OnlyTheThreadThatMergesIsTold) {
  const BuiltIn rules(nullptr);
  const auto in = [&](const char* thread, const char* merges) -> std::string {
    return stream_rules_match_merging(rules.set.get(), "/db/000013.sst", O_RDWR, thread, merges)
        ->vstream;
  };
  EXPECT_EQ(in("rocksdb:low0", "rocksdb-l0"), "rocksdb-l1");
  EXPECT_EQ(in("rocksdb:low0", nullptr), "rocksdb-sst");
  EXPECT_EQ(in("rocksdb:high0", "rocksdb-l3"), "rocksdb-l0") << "a flush merges nothing";
  EXPECT_EQ(in("other", "rocksdb-l0"), "rocksdb-sst");
}

TEST(Rules, AProfilesLifeIsFoundByItsVStream) {
  const BuiltIn rules("sqlite");
  EXPECT_EQ(stream_rules_life(rules.set.get(), "sqlite-journal"), unsigned{RWH_WRITE_LIFE_SHORT});
  EXPECT_EQ(stream_rules_life(rules.set.get(), "kafka-log"), unsigned{RWH_WRITE_LIFE_LONG})
      << "of any profile";
  EXPECT_EQ(stream_rules_life(rules.set.get(), "mine"), unsigned{RWH_WRITE_LIFE_NOT_SET});
}

// The quick look at a name and the rules themselves must never disagree.
TEST(Rules, NamesWithBytesOfARuleAndWithoutAreBothKnown) {
  for (const char* name : {"a-b", "-", "--", "a-", "-m", "a-m", "x-bin", "a-b.db", "-bi", "a-bin",
                           "ordinary-file.txt"}) {
    EXPECT_EQ(label(name), "") << name;
  }
  for (const char* name : {"-mj", "a-mj", "a-b-mj1", "--mj", "a-m-mjx"}) {
    EXPECT_EQ(label(name), "sqlite-super-journal") << name;
  }
  EXPECT_EQ(label("host-bin.000001"), "mysql-binlog");
  EXPECT_EQ(label("a-b-bin.000001"), "mysql-binlog");
}

// Or 16 patterns of one kind would have every name tried.
TEST(Rules, WhatIsLookedForAlreadyTakesNoRoom) {
  stream_rule rules[40] = {};
  for (stream_rule& rule : rules) {
    rule.profile = "p";
    rule.name = &rule == rules ? "*-x*" : "*-xy[0-9]*";
    rule.vstream = "v";
  }
  const BuiltIn built_in("default");
  built_in.set->profiles[built_in.set->profile_count++] = {"p", nullptr, rules, std::size(rules)};
  ASSERT_EQ(stream_rules_choose(built_in.set.get(), "p"), 0);
  EXPECT_EQ(built_in.set->cues.always, 0);
  const auto matches = [&](const char* name) {
    return stream_rules_match(built_in.set.get(), name, O_RDWR, "thread") != nullptr;
  };
  EXPECT_TRUE(matches("a-x"));
  EXPECT_TRUE(matches("a-xy1"));
  EXPECT_FALSE(matches("a-y"));
}

TEST(Rules, LabelsFitAVStreamNameAndAreKnownAsRules) {
  const BuiltIn rules("sqlite");
  for (const char* path :
       {"etilqs_1", "a-journal", "a-mj1", "a-wal", "a-shm", "pg_wal/1", "pgsql_tmp1", "1.sst",
        "000012.log", "#sql", "ib_logfile0", "binlog.1"}) {
    const std::string name = label(path);
    EXPECT_LE(name.size(), 31u);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string::npos) << name;
    EXPECT_TRUE(stream_rules_owns(rules.set.get(), name.c_str())) << name;
  }
  EXPECT_FALSE(stream_rules_owns(rules.set.get(), "mine"));
  EXPECT_FALSE(stream_rules_owns(rules.set.get(), ""));
}

}  // namespace
