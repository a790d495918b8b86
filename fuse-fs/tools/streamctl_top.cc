#include "fuse-fs/tools/streamctl_top.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/plain_help.h"
#include "base/result.h"
#include "base/table.h"
#include "fuse-fs/tools/control_client.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/rates.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;
using Line = Terminal::Line;
using WallClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr double kQuickest = 0.1, kSlowest = 3600;  // seconds

struct TopArguments {
  std::string path;
  double seconds = 2;
  uint64_t count = 0;  // 0: until told to end
  bool batch = false;
  ListingOptions vstreams;
};

void add_lines(std::vector<Line>& out, const std::string& text, bool title = false) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    out.push_back({line, title});
    title = false;
  }
}

// Terminal makes the heading bold, so the text needs no escape sequences.
Style without_colour(Style style) {
  style.colour = false;
  return style;
}

void add_head(std::vector<Line>& out, const TopSample& now, const json& interval,
              const Style& style) {
  const json& status = now.status;
  const auto rate = [&](const char* key) { return per_second(interval, interval, key, style); };
  out.push_back(
      {printable(fmt::format("streamfs {} {}  placement {}, {} pStreams", status.value("uuid", ""),
                             status.value("label", ""), status.value("placement", ""),
                             count_of(status, "pstreams"))),
       true});
  out.push_back({fmt::format(
      "a second: {} written, {} to the device, {} NAND, {} read, {:.1f} flushes", rate("app_bytes"),
      rate("written_bytes"), rate("nand_bytes"), rate("read_bytes"),
      static_cast<double>(count_of(interval, "flushes")) / interval.at("seconds").get<double>())});
  out.push_back({fmt::format("WAF {} now, {} in all; NAND per application byte {} now, {} in all",
                             short_ratio(interval, "waf"), short_ratio(status.at("device"), "waf"),
                             short_ratio(interval, "nand_per_app_byte"),
                             short_ratio(status, "nand_per_app_byte"))});
  const json& space = status.at("space");
  const uint64_t blocks = count_of(space, "data_blocks");
  out.push_back({fmt::format("{} of DATA used, {} files dirty, idle work: {}{}",
                             percent_text(blocks - count_of(space, "free_blocks"), blocks),
                             count_of(status, "dirty_inodes"), status.at("idle").value("state", ""),
                             status.value("degraded_read_only", false) ? "; READ-ONLY" : "")});
}

void add_pstreams(std::vector<Line>& out, const json& interval, const Style& style) {
  using enum Table::Align;
  Table table(
      {{"pStream"}, {"written/s", kRight, 11}, {"collected/s", kRight, 11}, {"WAF", kRight, 5}});
  for (const json& each : interval.at("streams")) {
    table.row({fmt::to_string(count_of(each, "stream")),
               per_second(interval, each, "written_bytes", style),
               per_second(interval, each, "gc_bytes", style), short_ratio(each, "waf")});
  }
  if (table.rows() == 0) return;
  out.push_back({});
  add_lines(out, table_text(table, without_colour(style)), true);
}

// Returns the bytes written to `stream` since `before`, which has the vStreams' counters at that
// time.
uint64_t written_since(const std::map<uint64_t, uint64_t>& before, const json& stream) {
  const uint64_t now = count_of(stream, "written_bytes");
  const auto found = before.find(count_of(stream, "vstream"));
  const uint64_t then = found == before.end() ? 0 : found->second;
  return now >= then ? now - then : now;
}

std::string what_of(const json& stream) {
  std::string what = stream.value("name", "");
  for (const char* other : {"comm", "source"})
    if (what.empty()) what = stream.value(other, "");
  return what;
}

Listing vstreams_listing() {
  using enum Table::Align;
  return Listing({{"vStream"},
                  {"pStream"},
                  {"written/s", kRight, 11},
                  {"live"},
                  {"lifetime"},
                  {"what", kLeft}},
                 "written/s");
}

Listing::Cell bytes_cell(uint64_t bytes, const Style& style) {
  return {bytes_text(bytes, style), static_cast<double>(bytes)};
}

void add_vstreams(std::vector<Line>& out, const TopSample& before, const TopSample& after,
                  double seconds, const ListingOptions& options, const Style& style) {
  std::map<uint64_t, uint64_t> then;
  for (const json& each : before.streams.at("streams"))
    then[count_of(each, "vstream")] = count_of(each, "written_bytes");
  Listing listing = vstreams_listing();
  for (const json& each : after.streams.at("streams")) {
    const uint64_t lifetime = count_of(each, "lifetime_bytes");
    const uint64_t vstream = count_of(each, "vstream"), pstream = count_of(each, "pstream");
    const double rate = static_cast<double>(written_since(then, each)) / seconds;
    listing.row({{fmt::to_string(vstream), static_cast<double>(vstream)},
                 {fmt::to_string(pstream), static_cast<double>(pstream)},
                 {rate_text(rate, style), rate},
                 bytes_cell(count_of(each, "live_bytes"), style),
                 lifetime == 0 ? Listing::Cell{"-", {}} : bytes_cell(lifetime, style),
                 {what_of(each), {}}});
  }
  if (listing.empty()) return;
  out.push_back({});
  add_lines(out, listing.text(options, without_colour(style)), !options.bare);
}

Result<TopSample> sample(ControlClient& client) {
  SFS_ASSIGN(json status, client.ask({{"op", "status"}}));
  SFS_ASSIGN(json streams, client.ask({{"op", "streams"}}));
  return TopSample{std::move(status), std::move(streams)};
}

milliseconds pause_of(const TopArguments& arguments) {
  return milliseconds(static_cast<int64_t>(arguments.seconds * 1000));
}

double seconds_since(WallClock::time_point begun) {
  return std::chrono::duration<double>(WallClock::now() - begun).count();
}

Result<void> in_batch(ControlClient& client, const TopArguments& arguments, const Style& style) {
  SFS_ASSIGN(TopSample before, sample(client));
  for (uint64_t frame = 0; arguments.count == 0 || frame < arguments.count; ++frame) {
    const auto begun = WallClock::now();
    std::this_thread::sleep_for(pause_of(arguments));
    SFS_ASSIGN(TopSample after, sample(client));
    if (style.json) {
      json interval = difference_of(before.status, after.status, seconds_since(begun));
      interval["vstreams"] = after.streams.at("streams");
      print_json(interval, Lines::kOne);
    } else {
      for (const Line& line :
           top_frame(before, after, seconds_since(begun), arguments.vstreams, style))
        fmt::print("{}\n", line.title ? inked(line.text, Ink::kTitle, style) : line.text);
      fmt::print("\n");
    }
    std::fflush(stdout);
    before = std::move(after);
  }
  return {};
}

// Runs on a terminal. Keys and new sizes take effect at once; figures change with each interval.
Result<void> on_terminal(ControlClient& client, const TopArguments& arguments, const Style& style) {
  SFS_ASSIGN(TopSample before, sample(client));
  Terminal terminal;
  std::vector<Line> lines = {{"streamctl top: q quits, space stops and goes on", true}};
  terminal.draw(lines);
  auto begun = WallClock::now();
  bool paused = false;
  for (uint64_t frame = 0; arguments.count == 0 || frame < arguments.count;) {
    const auto left =
        pause_of(arguments) - std::chrono::duration_cast<milliseconds>(WallClock::now() - begun);
    const Terminal::Key key = terminal.wait(std::max(milliseconds(0), left));
    if (key == Terminal::Key::kQuit) return {};
    if (key == Terminal::Key::kPause) paused = !paused;
    if (key == Terminal::Key::kResized) terminal.draw(lines);
    if (key != Terminal::Key::kNone || seconds_since(begun) < arguments.seconds) continue;
    SFS_ASSIGN(TopSample after, sample(client));
    if (!paused) {
      lines = top_frame(before, after, seconds_since(begun), arguments.vstreams, style);
      terminal.draw(lines);
      ++frame;
    }
    before = std::move(after);
    begun = WallClock::now();
  }
  return {};
}

Result<void> top(const TopArguments& arguments, const Style& style) {
  SFS_ASSIGN(ControlClient client, ControlClient::connect(arguments.path));
  const bool plain = arguments.batch || style.json || !Terminal::usable().ok();
  return plain ? in_batch(client, arguments, style) : on_terminal(client, arguments, style);
}

}  // namespace

std::vector<Line> top_frame(const TopSample& before, const TopSample& after, double seconds,
                            const ListingOptions& vstreams, const Style& style) {
  const json interval = difference_of(before.status, after.status, seconds);
  std::vector<Line> out;
  add_head(out, after, interval, style);
  add_pstreams(out, interval, style);
  add_vstreams(out, before, after, interval.at("seconds").get<double>(), vstreams, style);
  return out;
}

void declare_top(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<TopArguments>();
  CLI::App* command = commands.add(
      app, "top", "Show WAF and the writes of each stream, live; q quits, space pauses",
      [arguments](const Style& style) { return top(*arguments, style); });
  add_mountpoint(command, arguments->path);
  command
      ->add_option("-d,--delay", arguments->seconds,
                   "Wait so many seconds between two pictures (default 2)")
      ->check(seconds_between(kQuickest, kSlowest));
  command->add_option("-n,--count", arguments->count, "Show so many pictures, then end")
      ->check(at_least(1));
  command->add_flag("-b,--batch", arguments->batch,
                    "Print one picture after the other, as without a terminal");
  vstreams_listing().declare(command, arguments->vstreams);
}

}  // namespace streamfs::tools
