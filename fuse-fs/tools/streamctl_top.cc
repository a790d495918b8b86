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

#include "base/result.h"
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
};

void add_lines(std::vector<Line>& out, const std::string& text, bool title = false) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    out.push_back({line, title});
    title = false;
  }
}

// The title bold by Terminal, not by escape sequences.
void add_table(std::vector<Line>& out, const Table& table, Style style) {
  style.colour = false;
  out.push_back({});
  add_lines(out, table.text(style), true);
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
  if (table.rows() != 0) add_table(out, table, style);
}

// Each vStream of now, with what was written to it in the interval.
std::vector<std::pair<uint64_t, const json*>> busiest(const TopSample& before,
                                                      const TopSample& after) {
  std::map<uint64_t, uint64_t> was;
  for (const json& each : before.streams.at("streams"))
    was[count_of(each, "vstream")] = count_of(each, "written_bytes");
  std::vector<std::pair<uint64_t, const json*>> out;
  for (const json& each : after.streams.at("streams")) {
    const uint64_t now = count_of(each, "written_bytes"), then = was[count_of(each, "vstream")];
    out.emplace_back(now >= then ? now - then : now, &each);
  }
  const auto number = [](const auto& each) { return count_of(*each.second, "vstream"); };
  std::ranges::sort(out, [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : number(a) < number(b);
  });
  return out;
}

void add_vstreams(std::vector<Line>& out, const TopSample& before, const TopSample& after,
                  const json& interval, const Style& style) {
  using enum Table::Align;
  Table table({{"vStream"},
               {"pStream"},
               {"written/s", kRight, 11},
               {"live"},
               {"lifetime"},
               {"what", kLeft}});
  for (const auto& [written, stream] : busiest(before, after)) {
    const uint64_t lifetime = count_of(*stream, "lifetime_bytes");
    std::string what = stream->value("name", "");
    for (const char* other : {"comm", "source"})
      if (what.empty()) what = stream->value(other, "");
    table.row(
        {fmt::to_string(count_of(*stream, "vstream")), fmt::to_string(count_of(*stream, "pstream")),
         rate_text(static_cast<double>(written) / interval.at("seconds").get<double>(), style),
         bytes_of(*stream, "live_bytes", style), lifetime == 0 ? "-" : bytes_text(lifetime, style),
         std::move(what)});
  }
  if (table.rows() != 0) add_table(out, table, style);
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
      for (const Line& line : top_frame(before, after, seconds_since(begun), style))
        fmt::print("{}\n", line.title ? inked(line.text, Ink::kTitle, style) : line.text);
      fmt::print("\n");
    }
    std::fflush(stdout);
    before = std::move(after);
  }
  return {};
}

// Keys and new sizes are answered at once, figures change with each interval.
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
      lines = top_frame(before, after, seconds_since(begun), style);
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
                            const Style& style) {
  const json interval = difference_of(before.status, after.status, seconds);
  std::vector<Line> out;
  add_head(out, after, interval, style);
  add_pstreams(out, interval, style);
  add_vstreams(out, before, after, interval, style);
  return out;
}

void declare_top(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<TopArguments>();
  CLI::App* command = commands.add(
      app, "top", "WAF and what each stream writes, live; q quits, space stops and goes on",
      [arguments](const Style& style) { return top(*arguments, style); });
  add_mountpoint(command, arguments->path);
  command->add_option("-d,--delay", arguments->seconds, "Seconds between two pictures (2)")
      ->check(seconds_between(kQuickest, kSlowest));
  command->add_option("-n,--count", arguments->count, "So many pictures, then end")
      ->check(CLI::PositiveNumber);
  command->add_flag("-b,--batch", arguments->batch,
                    "Print one picture after the other, as without a terminal");
}

}  // namespace streamfs::tools
