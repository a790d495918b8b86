// Requests to the control socket, and what is answered. No sockets here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/io_sizes.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/frontend/control_requests.h"
#include "fuse-fs/frontend/meters.h"
#include "fuse-fs/frontend/status_json.h"
#include "fuse-fs/placement/placement.h"
#include "tests/unit/frontend/fake_filesystem.h"
#include "tests/unit/frontend/savings_report.h"

namespace streamfs::frontend {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr uid_t kStranger = 4711;

json ask(FakeFilesystem& fs, uid_t uid, const std::string& line) {
  Meters meters;
  return answer_control(fs, meters, {uid, [] { return true; }}, line).body;
}

TEST(ControlRequest, EveryAnswerSaysWhetherItWorked) {
  FakeFilesystem fs;
  EXPECT_EQ(ask(fs, 0, R"({"op": "status"})").at("ok"), true);
  EXPECT_EQ(ask(fs, 0, R"({"op": "sync"})").at("ok"), true);
  EXPECT_EQ(fs.syncs, 1);
}

TEST(ControlRequest, NonsenseIsRefusedWithASentence) {
  FakeFilesystem fs;
  for (const char* line : {"", "nonsense", "[]", "7", "{}", R"({"op": 7})", R"({"op": "dance"})",
                           R"({"op": "record"})", R"({"op": "record", "path": "relative"})",
                           R"({"op": "record", "path": 7})", R"({"op": "record", "stop": 1})",
                           "{\"op\": \"\xff\xfe\"}"}) {
    const json answer = ask(fs, 0, line);
    EXPECT_EQ(answer.at("ok"), false) << line;
    EXPECT_EQ(answer.at("errno"), EINVAL) << line;
    EXPECT_NE(answer.at("error").get<std::string>(), "") << line;
  }
}

TEST(ControlRequest, AScrubIsStartedStoppedAndToldOf) {
  FakeFilesystem fs;
  fs.scrub = {data::ScrubStatus::State::kDone, 9, 10, 4096, 1, 0, {{InodeId{5}, "rotten"}}};
  EXPECT_EQ(ask(fs, 0, R"({"op": "scrub", "action": "start"})").at("ok"), true);
  EXPECT_EQ(fs.scrubs_started, 1);
  EXPECT_EQ(ask(fs, 0, R"({"op": "scrub", "action": "stop"})").at("errno"), EALREADY);
  EXPECT_EQ(fs.scrubs_stopped, 0);
  fs.scrub.state = data::ScrubStatus::State::kRunning;
  EXPECT_EQ(ask(fs, 0, R"({"op": "scrub", "action": "stop"})").at("ok"), true);
  EXPECT_EQ(fs.scrubs_stopped, 1);
  fs.scrub.state = data::ScrubStatus::State::kDone;
  const json told = ask(fs, 0, R"({"op": "scrub", "action": "status"})");
  EXPECT_EQ(told.at("state"), "done");
  EXPECT_EQ(told.at("damaged"), 1);
  EXPECT_EQ(told.at("findings").at(0).at("inode"), 5);
  EXPECT_EQ(ask(fs, 0, R"({"op": "scrub", "action": "faster"})").at("errno"), EINVAL);
  EXPECT_EQ(ask(fs, 0, R"({"op": "scrub", "action": 7})").at("errno"), EINVAL);
}

TEST(ControlRequest, AGrowthSaysFromWhatToWhat) {
  FakeFilesystem fs;
  fs.grown = {{4096, 8192, 10}, {40960, 16384, 20}, true};
  const json told = ask(fs, 0, R"({"op": "grow", "meta_size": 16384, "dry_run": true})");
  EXPECT_EQ(fs.grown_with.meta_bytes, 16384U);
  EXPECT_TRUE(fs.grown_with.dry_run);
  EXPECT_EQ(told.at("before").at("data_bytes"), 4096);
  EXPECT_EQ(told.at("after").at("meta_bytes"), 16384);
  EXPECT_EQ(told.at("data_fixed"), true);
  EXPECT_EQ(ask(fs, 0, R"({"op": "grow"})").at("ok"), true);
  EXPECT_FALSE(fs.grown_with.meta_bytes.has_value());
  EXPECT_FALSE(fs.grown_with.dry_run);
  for (const char* size : {R"("1G")", "-1", "1.5", "null"}) {
    const std::string line = std::string(R"({"op": "grow", "meta_size": )") + size + "}";
    EXPECT_EQ(ask(fs, 0, line).at("errno"), EINVAL) << line;
  }
}

TEST(ControlRequest, LongWorkIsAskedForInSlicesOfFiveSecondsAtMost) {
  FakeFilesystem fs;
  const json run = ask(fs, 0, R"({"op": "maintain", "ms": 300})");
  EXPECT_EQ(run.at("finished"), false);
  EXPECT_EQ(run.at("copied_bytes"), 4096);
  EXPECT_EQ(run.at("erases"), 2);
  EXPECT_EQ(fs.maintained_ms, 300);
  EXPECT_EQ(ask(fs, 0, R"({"op": "prepare_poweroff", "ms": 3600000})").at("finished"), true);
  EXPECT_EQ(fs.prepared_ms, 5000);
  EXPECT_EQ(ask(fs, 0, R"({"op": "trim"})").at("next"), 100);
  EXPECT_TRUE(ask(fs, 0, R"({"op": "trim", "from": 100})").at("next").is_null());
  for (const char* line :
       {R"({"op": "maintain", "ms": -1})", R"({"op": "maintain", "ms": "x"})",
        R"({"op": "prepare_poweroff", "ms": 1.5})", R"({"op": "trim", "ms": null})",
        R"({"op": "trim", "from": "0"})", R"({"op": "trim", "from": -1})"}) {
    EXPECT_EQ(ask(fs, 0, line).at("errno"), EINVAL) << line;
  }
}

TEST(ControlRequest, AShutdownNamesItsModeAndIsTheLastRequestThatMayWrite) {
  FakeFilesystem fs;
  for (const char* line : {R"({"op": "shutdown"})", R"({"op": "shutdown", "mode": "gently"})",
                           R"({"op": "shutdown", "mode": 1})"}) {
    EXPECT_EQ(ask(fs, 0, line).at("errno"), EINVAL) << line;
  }
  EXPECT_FALSE(fs.shut_down_with.has_value());
  EXPECT_EQ(ask(fs, 0, R"({"op": "shutdown", "mode": "logflush"})").at("ok"), true);
  EXPECT_EQ(fs.shut_down_with, data::ShutdownMode::kLogFlush);
  for (const char* op :
       {"attach", "sync", "record", "grow", "maintain", "prepare_poweroff", "trim", "scrub"}) {
    const json request = {{"op", op}, {"path", "/x"}, {"action", "start"}};
    EXPECT_EQ(ask(fs, 0, request.dump()).value("errno", 0), EIO) << op;
  }
  EXPECT_EQ(ask(fs, 0, R"({"op": "status"})").at("ok"), true);
}

TEST(ControlRequest, ErrorsOfTheFilesystemArePassedOn) {
  FakeFilesystem fs;
  EXPECT_EQ(ask(fs, 0, R"({"op": "record", "path": "/refuse"})").at("errno"), EACCES);
}

TEST(ControlRequest, StrangersMayLookButNotTouch) {
  FakeFilesystem fs;
  EXPECT_EQ(ask(fs, kStranger, R"({"op": "status"})").at("ok"), true);
  EXPECT_EQ(ask(fs, kStranger, R"({"op": "streams"})").at("ok"), true);
  EXPECT_EQ(ask(fs, kStranger, R"({"op": "scrub"})").at("state"), "never");
  EXPECT_EQ(ask(fs, kStranger, R"({"op": "scrub", "action": "stop"})").at("errno"), EACCES);
  EXPECT_EQ(ask(fs, kStranger, R"({"op": "grow", "dry_run": true})").at("errno"), EACCES);
  EXPECT_EQ(ask(fs, kStranger, R"({"op": "shutdown", "mode": "default"})").at("errno"), EACCES);
  EXPECT_FALSE(fs.shut_down_with.has_value());
  for (const char* op : {"attach", "sync", "record", "maintain", "prepare_poweroff", "trim"}) {
    const json answer = ask(fs, kStranger, json({{"op", op}, {"path", "/x"}}).dump());
    EXPECT_EQ(answer.value("errno", 0), EACCES) << op;
  }
  EXPECT_EQ(fs.syncs, 0);
  EXPECT_FALSE(fs.prepared_ms || fs.maintained_ms);
}

TEST(ControlRequest, StatusHasWhatProgramsRead) {
  FakeFilesystem fs;
  const json status = ask(fs, 0, R"({"op": "status"})");
  EXPECT_EQ(status.at("meta_class"), "synced");
  EXPECT_EQ(status.at("app_bytes"), 4096);
  EXPECT_EQ(status.at("device").at("written_bytes"), 8192);
  EXPECT_EQ(status.at("device").at("nand_bytes"), 12288);
  EXPECT_DOUBLE_EQ(status.at("device").at("waf"), 1.5);
  EXPECT_DOUBLE_EQ(status.at("nand_per_app_byte"), 3.0);
  EXPECT_TRUE(status.at("device").contains("effective_spare"));
  EXPECT_EQ(status.at("meta").at("fences"), 3);
  for (const char* key : {"lines_flushed", "words_programmed", "block_words"}) {
    EXPECT_TRUE(status.at("meta").contains(key)) << key;
  }
}

TEST(ControlRequest, StreamsAreListedAsTheProtocolSays) {
  FakeFilesystem fs;
  const json answer = ask(fs, 0, R"({"op": "streams"})");
  const json& one = answer.at("streams").at(0);
  EXPECT_EQ(one.at("vstream"), 42);
  EXPECT_EQ(one.at("source"), "hint");
  EXPECT_EQ(one.at("lifetime_bytes"), 777);
  EXPECT_EQ(one.at("lifetime_low_bytes"), 700);
  EXPECT_EQ(one.at("lifetime_high_bytes"), 900);
}

TEST(ControlRequest, StrangersSeeNumbersAndBuiltInNamesOnly) {
  FakeFilesystem fs;
  const auto seen = [&](uid_t uid, const char* line = R"({"op": "streams"})") {
    const json stream = ask(fs, uid, line).at("streams").at(0);
    EXPECT_EQ(stream.at("vstream"), 42);
    EXPECT_EQ(stream.at("lifetime_bytes"), 777);
    std::string names;
    for (const char* key : {"name", "comm", "ext", "dir"})
      names += stream.at(key).get<std::string>();
    return names;
  };
  EXPECT_TRUE(seen(0).starts_with("wal"));
  EXPECT_TRUE(seen(geteuid()).starts_with("wal"));
  EXPECT_EQ(seen(kStranger), "");
  EXPECT_EQ(seen(kStranger, R"({"op": "streams", "names": "all"})"), "");
  EXPECT_EQ(seen(0, R"({"op": "streams", "names": "built-in"})"), "");
  placement::VStreamInfo info;
  info.name = "sqlite-wal";
  info.dir = "secret";
  info.built_in = true;
  const json stream = streams_json({info}, {}, Names::kBuiltIn).at("streams")[0];
  EXPECT_EQ(stream.at("name"), "sqlite-wal");
  EXPECT_EQ(stream.at("dir"), "");
}

TEST(ControlRequest, AStreamsShareOfCopiesIsNullWhereTheDeviceDoesNotTell) {
  placement::VStreamInfo info;
  info.pstream = PStreamId{1};
  blockdev::DeviceStats device;
  const auto share = [&] { return streams_json({info}, device, Names::kAll).at("streams")[0]; };
  EXPECT_TRUE(share().at("pstream_gc_share").is_null()) << "nothing was copied";
  device.gc_bytes = 4000;
  EXPECT_TRUE(share().at("pstream_gc_share").is_null()) << "copied, and not told where";
  device.streams = {{9000, 1000}, {9000, 3000}};
  EXPECT_DOUBLE_EQ(share().at("pstream_gc_share"), .75);
}

TEST(ControlRequest, ABlockIsToldOfAndOneBeyondTheDeviceIsRefused) {
  FakeFilesystem fs;
  fs.make_data_blocks(100);
  const json known = ask(fs, kStranger, R"({"op": "block", "block": 7})");
  EXPECT_EQ(known.at("known"), true);
  EXPECT_EQ(known.at("vstream"), 42);
  EXPECT_EQ(known.at("pstream"), 1);
  EXPECT_EQ(known.at("written_clock_bytes"), 100 * kBlockSize);
  EXPECT_EQ(known.at("age_bytes"), 250 * kBlockSize);
  const json unknown = ask(fs, 0, R"({"op": "block", "block": 99})");
  EXPECT_EQ(unknown.at("ok"), true);
  EXPECT_EQ(unknown.at("known"), false);
  const json beyond = ask(fs, 0, R"({"op": "block", "block": 100})");
  EXPECT_EQ(beyond.at("errno"), ERANGE);
  EXPECT_THAT(beyond.at("error").get<std::string>(), HasSubstr("beyond DATA, which has 100"));
  for (const char* line : {R"({"op": "block"})", R"({"op": "block", "block": -1})",
                           R"({"op": "block", "block": "7"})", R"({"op": "block", "block": 7.5})"})
    EXPECT_EQ(ask(fs, 0, line).at("errno"), EINVAL) << line;
}

TEST(ControlRequest, ChunksAreCountedAndMapped) {
  FakeFilesystem fs;
  fs.make_data_blocks(5 * wire::kChunkPages + 1);
  const json answer = ask(fs, kStranger, R"({"op": "chunks"})");
  EXPECT_EQ(answer.at("chunk_bytes"), 1 << 20);
  EXPECT_EQ(answer.at("chunks"), json({3, 1, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(answer.at("chunks_a_cell"), 1);
  EXPECT_EQ(answer.at("map"), "022100");
}

TEST(ControlRequest, ACellOfManyChunksHasTheirCommonestClass) {
  const std::vector<uint8_t> classes = {1, 2, 2, 0, 0, 3};
  const json told = chunks_json(classes, 3 * 4096 * uint64_t{wire::kChunkPages});
  EXPECT_EQ(told.at("chunks_a_cell"), 3);
  EXPECT_EQ(told.at("map").get<std::string>().size(), 4096U);
  EXPECT_EQ(told.at("map").get<std::string>().substr(0, 3), "200");
}

// ---- Savings and times

json tell(FakeFilesystem& fs, Meters& meters, bool daemon, const json& report) {
  const std::string line = json({{"op", "savings"}, {"report", report}}).dump();
  return answer_control(fs, meters, {0, [] { return true; }, [=] { return daemon; }}, line).body;
}

json told(FakeFilesystem& fs, Meters& meters) {
  return answer_control(fs, meters, {kStranger, [] { return false; }}, R"({"op": "status"})")
      .body.at("saved");
}

TEST(Savings, WhatTheDaemonTellsStaysWhileItIsAway) {
  FakeFilesystem fs;
  Meters meters;
  EXPECT_TRUE(told(fs, meters).is_null());
  EXPECT_EQ(tell(fs, meters, true, savings_report()).at("ok"), true);
  EXPECT_EQ(told(fs, meters).at("month").at("saved_bytes"), 1500000);
  EXPECT_EQ(told(fs, meters).at("all").at("saved_low_bytes"), -1);
  EXPECT_GT(told(fs, meters).at("told_ms"), 1700000000000);
}

TEST(Savings, NobodyButTheDaemonTellsThem) {
  FakeFilesystem fs;
  Meters meters;
  EXPECT_EQ(tell(fs, meters, false, savings_report()).at("errno"), EACCES);
  EXPECT_TRUE(told(fs, meters).is_null());
}

TEST(Savings, MomentsOfThePastAreToldToWhoAsks) {
  FakeFilesystem fs;
  Meters meters;
  json report = savings_report();
  report["history"] = {{1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 0}};
  ASSERT_EQ(tell(fs, meters, true, report).at("ok"), true);
  const auto asked = [&] {
    return answer_control(fs, meters, {kStranger, [] { return false; }}, R"({"op": "savings"})")
        .body;
  };
  EXPECT_EQ(asked().at("history"), report["history"]);
  EXPECT_EQ(asked().at("saved").at("one_in"), 64);
  for (const json& wrong : {json(7), json({{1, 2, 3}}), json({{1, 2, 3, 4, 5, 6, -7}}),
                            json({{2, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7}}),
                            json(std::vector<json>(257, report["history"][0]))}) {
    json other = savings_report();
    other["history"] = wrong;
    EXPECT_EQ(tell(fs, meters, true, other).at("errno"), EINVAL) << wrong;
  }
  EXPECT_EQ(asked().at("history"), report["history"]);
}

TEST(Savings, WhatCannotBeIsRefusedAndTheLastStays) {
  FakeFilesystem fs;
  Meters meters;
  ASSERT_EQ(tell(fs, meters, true, savings_report()).at("ok"), true);
  std::vector<json> wrong = {json(), json::array(), json::object(), 7};
  for (const char* path :
       {"/version", "/one_in", "/all", "/month", "/all/since_ms", "/all/written_bytes",
        "/month/nand_off_bytes", "/month/nand_placed_bytes", "/all/nand_oracle_bytes",
        "/all/saved_bytes", "/month/saved_low_bytes", "/month/saved_high_bytes"}) {
    for (const json& value : {json(), json("x"), json(0.5), json(UINT64_MAX), json::array()}) {
      wrong.push_back(savings_report());
      wrong.back()[json::json_pointer(path)] = value;
    }
  }
  wrong.push_back(savings_report());
  wrong.back()["one_in"] = 0;
  wrong.push_back(savings_report());
  wrong.back()["version"] = 2;
  wrong.push_back(savings_report());
  wrong.back()["all"]["saved_low_bytes"] = 1500001;
  for (const json& report : wrong) {
    EXPECT_EQ(tell(fs, meters, true, report).at("errno"), EINVAL) << report;
  }
  EXPECT_EQ(told(fs, meters).at("month").at("saved_bytes"), 1500000);
}

TEST(OpTimes, AreCountedByOperationInFineBucketsAndPowersOfTwoOfMicroseconds) {
  FakeFilesystem fs;
  Meters meters;
  for (const uint64_t ns : {1U, 1000U, 1001U, 2000U, 4001U}) meters.ops.add(Op::kFsync, ns);
  meters.ops.add(Op::kRead, uint64_t{1} << 60);
  const json now =
      answer_control(fs, meters, {kStranger, [] { return false; }}, R"({"op": "metrics"})").body;
  const json& ops = now.at("ops");
  ASSERT_EQ(ops.size(), 2U);
  EXPECT_EQ(ops.at(1).at("op"), "fsync");
  EXPECT_EQ(ops.at(1).at("sum_ns"), 8003);
  const json& counts = ops.at(1).at("counts");
  ASSERT_EQ(counts.size(), now.at("bounds_us").size() + 1);
  EXPECT_EQ(now.at("bounds_us").at(3), 8);
  EXPECT_EQ(counts.at(0), 2);  // at most 1 µs
  EXPECT_EQ(counts.at(1), 2);  // at most 2
  EXPECT_EQ(counts.at(3), 1);  // at most 8
  const json buckets = {
      {0, 1, 1}, {992, 1000, 1}, {1000, 1008, 1}, {1984, 2000, 1}, {4000, 4032, 1}};
  EXPECT_EQ(ops.at(1).at("buckets"), buckets);
  EXPECT_EQ(ops.at(0).at("counts").back(), 1);  // beyond all bounds
}

TEST(IoSizes, AreToldForTheKernelAndTheDevice) {
  FakeFilesystem fs;
  Meters meters;
  meters.sizes.add(IoSizes::Kind::kRead, 4096);
  meters.sizes.add(IoSizes::Kind::kRead, 4096);
  fs.sizes.add(IoSizes::Kind::kWrite, 1 << 20);
  const json told =
      answer_control(fs, meters, {kStranger, [] { return false; }}, R"({"op": "metrics"})").body;
  const json expected = {
      {{"side", "kernel"}, {"op", "read"}, {"sum_bytes", 8192}, {"buckets", {{4064, 4096, 2}}}},
      {{"side", "kernel"}, {"op", "write"}, {"sum_bytes", 0}, {"buckets", json::array()}},
      {{"side", "device"}, {"op", "read"}, {"sum_bytes", 0}, {"buckets", json::array()}},
      {{"side", "device"},
       {"op", "write"},
       {"sum_bytes", 1 << 20},
       {"buckets", {{1040384, 1 << 20, 1}}}}};
  EXPECT_EQ(told.at("sizes"), expected);
}

TEST(Uuid, IsWrittenAsEveryoneDoes) {
  const std::array<uint8_t, 16> uuid = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
                                        1,    2,    3,    4,    5,    6,    7,    8};
  EXPECT_EQ(uuid_text(uuid), "12345678-9abc-def0-0102-030405060708");
}

}  // namespace
}  // namespace streamfs::frontend
