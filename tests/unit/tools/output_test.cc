// Tests of what programs print: figures, the intervals of iostat and top, usage's sums.
#include "fuse-fs/tools/output.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fuse-fs/tools/rates.h"
#include "fuse-fs/tools/streamctl_probe.h"
#include "fuse-fs/tools/streamctl_top.h"
#include "fuse-fs/tools/streamctl_usage.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

const Style kHuman{};
const Style kRaw{.raw = true};

TEST(OutputTest, BytesAndCountsAreForPeopleOrRaw) {
  EXPECT_EQ(bytes_text(1536, kHuman), "1.5 KiB");
  EXPECT_EQ(bytes_text(1536, kRaw), "1536");
  EXPECT_EQ(count_text(9999, kHuman), "9999");
  EXPECT_EQ(count_text(12345, kHuman), "12.3K");
  EXPECT_EQ(count_text(999'960'000, kHuman), "1.0G");
  EXPECT_EQ(count_text(12345, kRaw), "12345");
  EXPECT_EQ(rate_text(-1, kRaw), "0");
  EXPECT_EQ(percent_text(1, 0), "0.0 %");
}

TEST(OutputTest, WhatIsNotToldIsUnknown) {
  const json told = {{"a", 4096}, {"b", nullptr}, {"c", "x"}};
  EXPECT_EQ(bytes_of(told, "a", kRaw), "4096");
  for (const char* key : {"b", "c", "d"}) {
    EXPECT_EQ(bytes_of(told, key, kHuman), "unknown");
    EXPECT_EQ(ratio_of(told, key), "unknown");
    EXPECT_EQ(count_of(told, key), 0U);
  }
}

TEST(OutputTest, EveryObjectHasASchema) {
  EXPECT_EQ(json::parse(json_text({{"a", 1}})).at("schema"), 1);
  const std::string line = json_text({{"a", "\xff no UTF-8"}}, Lines::kOne);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_FALSE(json::parse(line, nullptr, false).is_discarded());
}

TEST(OutputTest, ColourOnlyWhereItIsWanted) {
  EXPECT_EQ(inked("x", Ink::kBad, kHuman), "x");
  EXPECT_NE(inked("x", Ink::kBad, Style{.colour = true}), "x");
  EXPECT_FALSE(may_colour(-1));
}

json status_with(uint64_t app, uint64_t written, const json& nand) {
  return {{"app_bytes", app},
          {"device",
           {{"written_bytes", written},
            {"read_bytes", 0},
            {"trimmed_bytes", 0},
            {"flushes", 3},
            {"nand_bytes", nand},
            {"gc_bytes", nand},
            {"streams", {{{"written_bytes", written}, {"gc_bytes", 0}}}}}}};
}

TEST(RatesTest, AnIntervalIsTheDifference) {
  const json between = difference_of(status_with(100, 1000, 1000), status_with(300, 2000, 3000), 2);
  EXPECT_EQ(between.at("app_bytes"), 200);
  EXPECT_EQ(between.at("waf"), 2.0);
  EXPECT_EQ(between.at("nand_per_app_byte"), 10.0);
  EXPECT_EQ(between.at("flushes"), 0);
  EXPECT_EQ(between.at("streams").at(0).at("waf"), 1.0);
  EXPECT_EQ(per_second(between, between, "app_bytes", kRaw), "100");
}

TEST(RatesTest, NothingWrittenHasNoRatioAndAnUnknownDeviceNone) {
  const json idle = difference_of(status_with(1, 1, 1), status_with(1, 1, 1), 1);
  EXPECT_TRUE(idle.at("waf").is_null());
  const json untold = difference_of(status_with(0, 0, nullptr), status_with(9, 9, nullptr), 1);
  EXPECT_TRUE(untold.at("nand_bytes").is_null());
  EXPECT_EQ(per_second(untold, untold, "nand_bytes", kRaw), "-");
  EXPECT_EQ(short_ratio(untold, "waf"), "-");
}

TEST(RatesTest, CountersThatBeganAnewCountFromZero) {
  const json anew = difference_of(status_with(500, 9000, 9000), status_with(600, 50, 75), 1);
  EXPECT_EQ(anew.at("written_bytes"), 50);
  EXPECT_EQ(anew.at("waf"), 1.5);
}

json metrics_with(json buckets) {
  return {{"ops", {{{"op", "write"}, {"sum_ns", 1}, {"buckets", std::move(buckets)}}}}};
}

TEST(RatesTest, LatenciesAreOfTheIntervalAlone) {
  const json between = latencies_between(
      metrics_with({{0, 1, 1000}}),
      metrics_with({{0, 1, 1000}, {1984, 2000, 98}, {4000, 4032, 2}, {7936, 8000, 1}}));
  EXPECT_EQ(between.at("write").at("count"), 101);
  EXPECT_EQ(between.at("write").at("p50_us"), 1.9925);
  EXPECT_EQ(between.at("write").at("p99_us"), 4.0165);
  EXPECT_EQ(between.at("write").at("p999_us"), 7.9685);
  EXPECT_EQ(between.at("write").at("max_us"), 7.9685);
  EXPECT_EQ(between.at("read").at("count"), 0);
  EXPECT_TRUE(between.at("read").at("p50_us").is_null());
}

TEST(RatesTest, LatenciesThatTheMountDoesNotReportAreUnknown) {
  EXPECT_TRUE(latencies_between({}, {}).at("write").is_null());
  json without = metrics_with({});
  without.at("ops").at(0).erase("buckets");
  EXPECT_TRUE(latencies_between(without, without).at("write").is_null());
}

json usage_status() {
  return {{"uuid", "u"},
          {"trims_pending_blocks", 5},
          {"layout",
           {{"data_bytes", 100 * 4096},
            {"reserved_bytes", 10 * 4096},
            {"meta_bytes", 20 * 4096},
            {"journal_bytes", 4096},
            {"bitmap_bytes", 4096},
            {"untrimmed_bytes", 4096},
            {"checksum_bytes", 4096},
            {"heap_map_bytes", 4096},
            {"heap_bytes", 10 * 4096},
            {"vstream_bytes", 4096}}},
          {"space",
           {{"data_blocks", 90},
            {"free_blocks", 30},
            {"heap_units", 10},
            {"free_units", 4},
            {"inodes_possible", 50},
            {"inodes_free", 20}}}};
}

uint64_t sum_but(const json& parts, const char* left_out) {
  uint64_t sum = 0;
  for (const auto& [name, value] : parts.items())
    if (name != left_out) sum += value.get<uint64_t>();
  return sum;
}

TEST(UsageTest, PartsAddUpToTheWhole) {
  const json usage = usage_json(usage_status(), {{"streams", json::array()}});
  const json& data = usage.at("data");
  EXPECT_EQ(sum_but(data, "bytes"), data.at("bytes"));
  EXPECT_EQ(data.at("unreclaimed_bytes"), 5 * 4096);
  EXPECT_EQ(data.at("free_bytes"), 25 * 4096);
  const json& meta = usage.at("meta");
  EXPECT_EQ(sum_but(meta, "bytes"), meta.at("bytes"));
  EXPECT_EQ(usage.at("files").at("used"), 30);
}

TEST(TopTest, TheBusiestVStreamComesFirst) {
  json status = status_with(1, 1, 1);
  status["space"] = usage_status().at("space");
  status["idle"] = {{"state", "busy"}};
  const auto stream = [](int number, int written, const char* name) {
    return json{{"vstream", number}, {"pstream", 1}, {"written_bytes", written}, {"name", name}};
  };
  const TopSample before{status, {{"streams", {stream(1, 900, "old"), stream(2, 10, "new")}}}};
  const TopSample after{status, {{"streams", {stream(1, 901, "old"), stream(2, 99, "new")}}}};
  const auto frame = top_frame(before, after, 1, {}, kHuman);
  std::string text;
  for (const auto& line : frame) text += line.text + "\n";
  EXPECT_LT(text.find("new"), text.find("old"));
  EXPECT_EQ(text.find("READ-ONLY"), std::string::npos);
}

TEST(ProbeTest, UdevSeesNoCharacterThatMeansSomethingToIt) {
  EXPECT_EQ(udev_escaped("my disk"), "my\\x20disk");
  EXPECT_EQ(udev_escaped("a/b\nc\"$`"), "a\\x2fb\\x0ac\\x22\\x24\\x60");
  EXPECT_EQ(udev_escaped("ok-1.2_x"), "ok-1.2_x");
}

}  // namespace
}  // namespace streamfs::tools
