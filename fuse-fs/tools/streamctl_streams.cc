#include "fuse-fs/tools/streamctl_streams.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/table.h"
#include "fuse-fs/tools/control_client.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;
using Cell = Listing::Cell;

constexpr size_t kMapColumns = 64;

struct StreamsArguments {
  std::string path;
  ListingOptions listing;
  bool chunks = false;
};

Cell count_cell(const json& stream, const char* key) {
  const uint64_t count = count_of(stream, key);
  return {fmt::to_string(count), static_cast<double>(count)};
}

Cell bytes_cell(const json& stream, const char* key, const Style& style) {
  return {bytes_of(stream, key, style), static_cast<double>(count_of(stream, key))};
}

Cell lifetime_cell(const json& stream, const Style& style) {
  if (count_of(stream, "lifetime_bytes") != 0) return bytes_cell(stream, "lifetime_bytes", style);
  if (count_of(stream, "expected_bytes") == 0) return {"not known yet", {}};
  Cell said = bytes_cell(stream, "expected_bytes", style);
  said.text = "said: " + said.text;
  return said;
}

std::string limits_text(const json& stream, const Style& style) {
  const uint64_t high = count_of(stream, "lifetime_high_bytes");
  return high == 0
             ? ""
             : fmt::format("{} - {}", bytes_text(count_of(stream, "lifetime_low_bytes"), style),
                           bytes_text(high, style));
}

Cell copies_cell(const json& stream) {
  const auto share = stream.find("pstream_gc_share");
  if (share == stream.end() || !share->is_number()) return {"not told", {}};
  return {fmt::format("{:.1f} %", 100 * share->get<double>()), share->get<double>()};
}

// Describes the origin of a vStream in a few words.
std::string origin_of(const json& stream) {
  std::string text;
  for (const char* key : {"name", "comm", "ext", "dir"}) {
    const std::string part = stream.value(key, std::string{});
    if (part.empty()) continue;
    if (!text.empty()) text += ' ';
    text += std::string(key) == "name" ? part : fmt::format("{}={}", key, part);
  }
  return printable(std::move(text));
}

Listing streams_listing() {
  using enum Table::Align;
  return Listing({{"vStream"},
                  {"pStream"},
                  {"copies"},
                  {"source", kLeft},
                  {"written"},
                  {"live"},
                  {"lifetime"},
                  {"confidence"},
                  {"what", kLeft}},
                 "written");
}

Result<void> streams(const StreamsArguments& arguments, const Style& style) {
  SFS_ASSIGN(ControlClient client, ControlClient::connect(arguments.path));
  SFS_ASSIGN(const json answer, client.ask({{"op", arguments.chunks ? "chunks" : "streams"}}));
  if (style.json) {
    print_json(answer);
  } else {
    fmt::print("{}", arguments.chunks ? chunks_text(answer, style)
                                      : streams_text(answer, arguments.listing, style));
  }
  return {};
}

}  // namespace

std::string streams_text(const json& streams, const ListingOptions& options, const Style& style) {
  Listing listing = streams_listing();
  for (const json& each : streams.at("streams")) {
    listing.row({count_cell(each, "vstream"),
                 count_cell(each, "pstream"),
                 copies_cell(each),
                 {each.value("source", ""), {}},
                 bytes_cell(each, "written_bytes", style),
                 bytes_cell(each, "live_bytes", style),
                 lifetime_cell(each, style),
                 {limits_text(each, style), {}},
                 {origin_of(each), {}}});
  }
  return listing.text(options, style);
}

std::string chunks_text(const json& chunks, const Style& style) {
  const uint64_t chunk_bytes = count_of(chunks, "chunk_bytes");
  Table classes({{"class"}, {"chunks"}, {"size"}});
  const json& counts = chunks.at("chunks");
  for (size_t cls = 0; cls < counts.size(); ++cls) {
    const auto count = counts[cls].get<uint64_t>();
    if (count > 0)
      classes.row(
          {fmt::to_string(cls), fmt::to_string(count), bytes_text(count * chunk_bytes, style)});
  }
  const uint64_t cell_bytes = count_of(chunks, "chunks_a_cell") * chunk_bytes;
  std::string out = classes.text() + "\nThe classes by place, 0 is unknown; a digit is " +
                    bytes_text(cell_bytes, style) + ":\n";
  const auto map = chunks.at("map").get<std::string>();
  for (size_t at = 0; at < map.size(); at += kMapColumns)
    out += fmt::format("{:>12}  {}\n", bytes_text(at * cell_bytes, style),
                       map.substr(at, kMapColumns));
  return out;
}

void declare_streams(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<StreamsArguments>();
  CLI::App* command =
      commands.add(app, "streams",
                   "List vStreams: pStream, share of its writes that were copies, bytes written "
                   "and live, lifetime in bytes written with 95 % confidence limits",
                   [arguments](const Style& style) { return streams(*arguments, style); });
  add_mountpoint(command, arguments->path);
  streams_listing().declare(command, arguments->listing);
  command->add_flag("--chunks", arguments->chunks,
                    "Show instead how often the data of each MiB of DATA is overwritten: the "
                    "classes that the placement model tells apart, and a map of them");
}

}  // namespace streamfs::tools
