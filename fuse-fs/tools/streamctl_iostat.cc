#include "fuse-fs/tools/streamctl_iostat.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/plain_help.h"
#include "base/result.h"
#include "base/table.h"
#include "fuse-fs/tools/control_client.h"
#include "fuse-fs/tools/histograms.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/rates.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;
using WallClock = std::chrono::steady_clock;

constexpr double kShortest = 0.1, kLongest = 86400;  // seconds
constexpr uint64_t kTitleEvery = 20;                 // lines

struct IostatArguments {
  std::string path;
  double seconds = 1;
  bool intervals = false;  // SECONDS was given
  uint64_t count = 1;      // 0: until interrupted
  bool streams = false, times = false, sizes = false;

  bool histograms() const { return times || sizes; }
};

Table totals_table() {
  using enum Table::Align;
  return Table({{"written", kRight, 11},
                {"to device", kRight, 11},
                {"NAND", kRight, 11},
                {"read", kRight, 11},
                {"trimmed", kRight, 11},
                {"flushes", kRight, 7},
                {"WAF", kRight, 5},
                {"NAND/app", kRight, 8},
                {"read us", kRight, 8},
                {"write us", kRight, 8},
                {"fsync us", kRight, 8}});
}

std::string latency(const json& interval, const char* op) {
  const json& found = interval.at("latencies").at(op);
  if (!found.is_object() || !found.at("p99_us").is_number()) return "-";
  return fmt::format("{:.3g}", found.at("p99_us").get<double>());
}

std::string flushes_text(const json& interval) {
  return fmt::format("{:.1f}", static_cast<double>(count_of(interval, "flushes")) /
                                   interval.at("seconds").get<double>());
}

void add_totals(Table& table, const json& interval, const Style& style) {
  const auto rate = [&](const char* key) { return per_second(interval, interval, key, style); };
  table.row({rate("app_bytes"), rate("written_bytes"), rate("nand_bytes"), rate("read_bytes"),
             rate("trimmed_bytes"), flushes_text(interval), short_ratio(interval, "waf"),
             short_ratio(interval, "nand_per_app_byte"), latency(interval, "read"),
             latency(interval, "write"), latency(interval, "fsync")});
}

std::string streams_text(const json& interval, const Style& style) {
  using enum Table::Align;
  Table table(
      {{"pStream"}, {"written", kRight, 11}, {"collected", kRight, 11}, {"WAF", kRight, 5}});
  for (const json& each : interval.at("streams")) {
    table.row({fmt::to_string(count_of(each, "stream")),
               per_second(interval, each, "written_bytes", style),
               per_second(interval, each, "gc_bytes", style), short_ratio(each, "waf")});
  }
  return table_text(table, style);
}

void print_interval(const json& interval, const IostatArguments& arguments, uint64_t number,
                    const Style& style) {
  if (style.json) {
    print_json(interval, Lines::kOne);
  } else {
    Table table = totals_table();
    add_totals(table, interval, style);
    if (number % kTitleEvery == 0 || arguments.streams) {
      if (number == 0) fmt::print("a second; us: what 99 % of the requests took at most\n");
      fmt::print("{}", heading_text(table, style));
    }
    fmt::print("{}", table.body());
    if (arguments.streams) fmt::print("{}", streams_text(interval, style));
  }
  std::fflush(stdout);
}

struct IostatSample {
  json status, metrics;  // metrics: null if the mount does not report them
  WallClock::time_point at;
};

Result<IostatSample> take_sample(ControlClient& client) {
  IostatSample out;
  SFS_ASSIGN(out.status, client.ask({{"op", "status"}}));
  if (auto metrics = client.ask({{"op", "metrics"}}); metrics.ok()) out.metrics = *metrics;
  out.at = WallClock::now();
  return out;
}

json interval_of(const IostatSample& before, const IostatSample& after) {
  const std::chrono::duration<double> took = after.at - before.at;
  json out = difference_of(before.status, after.status, took.count());
  out["latencies"] = latencies_between(before.metrics, after.metrics);
  return out;
}

std::string histograms_title(Measure measure, std::optional<double> seconds) {
  const char* what = measure == Measure::kTimes
                         ? "times of requests"
                         : "sizes of the kernel's requests, and of those to DATA";
  return seconds ? fmt::format("{}, in {:.1f} s", what, *seconds)
                 : fmt::format("{}, since the mount", what);
}

// `before` is null for all requests since the mount.
Result<void> print_histograms(const IostatSample* before, const IostatSample& after,
                              const IostatArguments& arguments, const Style& style) {
  const Measure measure = arguments.times ? Measure::kTimes : Measure::kSizes;
  const auto found =
      histograms_between(before == nullptr ? json() : before->metrics, after.metrics, measure);
  if (!found) {
    return Error{ENOTSUP, arguments.path +
                              " is served by a version that reports no histograms; mount it again"};
  }
  std::optional<double> seconds;
  if (before != nullptr) seconds = std::chrono::duration<double>(after.at - before->at).count();
  if (style.json) {
    print_json({{"seconds", seconds ? json(*seconds) : json()},
                {measure == Measure::kTimes ? "ops" : "sizes", histograms_json(*found, measure)}},
               arguments.intervals ? Lines::kOne : Lines::kMany);
  } else {
    fmt::print("{}\n{}", histograms_title(measure, seconds),
               histograms_text(*found, measure, style));
  }
  std::fflush(stdout);
  return {};
}

Result<void> iostat(const IostatArguments& arguments, const Style& style) {
  SFS_ASSIGN(ControlClient client, ControlClient::connect(arguments.path));
  SFS_ASSIGN(IostatSample before, take_sample(client));
  if (arguments.histograms() && !arguments.intervals)
    return print_histograms(nullptr, before, arguments, style);
  for (uint64_t number = 0; arguments.count == 0 || number < arguments.count; ++number) {
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.seconds));
    SFS_ASSIGN(IostatSample after, take_sample(client));
    if (arguments.histograms()) {
      SFS_TRY(print_histograms(&before, after, arguments, style));
    } else {
      print_interval(interval_of(before, after), arguments, number, style);
    }
    before = std::move(after);
  }
  return {};
}

}  // namespace

void declare_iostat(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<IostatArguments>();
  CLI::App* command = commands.add(
      app, "iostat",
      "Print bytes that programs write, bytes that reach the device and its NAND, and WAF",
      [arguments](const Style& style) { return iostat(*arguments, style); });
  add_mountpoint(command, arguments->path);
  command
      ->add_option("SECONDS", arguments->seconds, "Print a line every so many seconds (default 1)")
      ->check(seconds_between(kShortest, kLongest))
      ->each([arguments](const std::string&) {
        arguments->count = 0;
        arguments->intervals = true;
      });
  command
      ->add_option("COUNT", arguments->count,
                   "Print so many lines (default: 1 without SECONDS, else until interrupted)")
      ->check(at_least(1));
  CLI::Option* streams =
      command->add_flag("--streams", arguments->streams, "Print each pStream, too");
  CLI::Option* times = command->add_flag(
      "-w,--latencies", arguments->times,
      "Print how many requests took how long, by operation (without SECONDS: since the mount)");
  command
      ->add_flag("-r,--sizes", arguments->sizes,
                 "Print the sizes of reads and writes (without SECONDS: since the mount)")
      ->excludes(times)
      ->excludes(streams);
  times->excludes(streams);
}

}  // namespace streamfs::tools
