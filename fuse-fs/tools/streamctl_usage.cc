#include "fuse-fs/tools/streamctl_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/table.h"
#include "base/types.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/tools/control_client.h"
#include "fuse-fs/tools/listing.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

json data_usage(const json& status) {
  const json& space = status.at("space");
  const uint64_t room = count_of(space, "data_blocks"), free = count_of(space, "free_blocks");
  const uint64_t unreclaimed = std::min(free, count_of(status, "trims_pending_blocks"));
  return {{"bytes", count_of(status.at("layout"), "data_bytes")},
          {"reserved_bytes", count_of(status.at("layout"), "reserved_bytes")},
          {"used_bytes", (room - std::min(free, room)) * kBlockSize},
          {"unreclaimed_bytes", unreclaimed * kBlockSize},
          {"free_bytes", (free - unreclaimed) * kBlockSize}};
}

json meta_usage(const json& status) {
  const json& layout = status.at("layout");
  const json& space = status.at("space");
  const uint64_t size = count_of(layout, "meta_bytes");
  const uint64_t maps = count_of(layout, "bitmap_bytes") + count_of(layout, "untrimmed_bytes") +
                        count_of(layout, "heap_map_bytes");
  const uint64_t free = count_of(space, "free_units") * meta::kUnitSize;
  const uint64_t heap = count_of(layout, "heap_bytes");
  const uint64_t fixed = count_of(layout, "journal_bytes") + count_of(layout, "intent_log_bytes") +
                         maps + count_of(layout, "checksum_bytes") +
                         count_of(layout, "vstream_bytes");
  return {{"bytes", size},
          {"journal_bytes", count_of(layout, "journal_bytes")},
          {"intent_log_bytes", count_of(layout, "intent_log_bytes")},
          {"checksum_bytes", count_of(layout, "checksum_bytes")},
          {"map_bytes", maps},
          {"vstream_bytes", count_of(layout, "vstream_bytes")},
          {"used_bytes", heap - std::min(free, heap)},
          {"free_bytes", std::min(free, heap)},
          {"other_bytes", size - std::min(size, fixed + heap)}};  // superblocks, alignment
}

struct Part {
  const char* name;
  const char* key;
  const char* what;
};

void print_parts(const char* title, const json& parts, std::initializer_list<Part> rows,
                 const Style& style) {
  using enum Table::Align;
  const uint64_t size = count_of(parts, "bytes");
  Table table(
      {{title, kLeft, 14}, {bytes_text(size, style), kRight, 12}, {"", kRight, 8}, {"", kLeft}});
  for (const Part& row : rows) {
    const uint64_t bytes = count_of(parts, row.key);
    table.row({std::string("  ") + row.name, bytes_text(bytes, style), percent_text(bytes, size),
               row.what});
  }
  fmt::print("{}", table_text(table, style));
}

Listing streams_held() {
  return Listing({{"vStream"}, {"pStream"}, {"live"}, {"written"}, {"what", Table::Align::kLeft}},
                 "live");
}

void print_streams_held(const json& streams, const ListingOptions& options, const Style& style) {
  Listing listing = streams_held();
  const auto number = [](const json& stream, const char* key) {
    return static_cast<double>(count_of(stream, key));
  };
  for (const json& each : streams) {
    listing.row({{fmt::to_string(count_of(each, "vstream")), number(each, "vstream")},
                 {fmt::to_string(count_of(each, "pstream")), number(each, "pstream")},
                 {bytes_of(each, "live_bytes", style), number(each, "live_bytes")},
                 {bytes_of(each, "written_bytes", style), number(each, "written_bytes")},
                 {each.value("what", ""), {}}});
  }
  if (!listing.empty()) fmt::print("{}", listing.text(options, style));
}

void print_usage(const json& usage, const ListingOptions& options, const Style& style) {
  print_parts("DATA", usage.at("data"),
              {{"files", "used_bytes", "data of files"},
               {"reserved", "reserved_bytes", "label, log of the metadata and its snapshots"},
               {"unreclaimed", "unreclaimed_bytes", "freed, not yet trimmed"},
               {"free", "free_bytes", ""}},
              style);
  print_parts("META", usage.at("meta"),
              {{"used", "used_bytes", "inodes, names, extents, attributes"},
               {"checksums", "checksum_bytes", "of data"},
               {"journal", "journal_bytes", ""},
               {"intent log", "intent_log_bytes", "data of fsyncs on its way to DATA"},
               {"maps", "map_bytes", "of blocks and of META's own units"},
               {"vStreams", "vstream_bytes", ""},
               {"other", "other_bytes", "superblocks, alignment"},
               {"free", "free_bytes", ""}},
              style);
  const json& files = usage.at("files");
  fmt::print("Files: {} of about {} that fit\n", count_text(count_of(files, "used"), style),
             count_text(count_of(files, "possible"), style));
  print_streams_held(usage.at("streams"), options, style);
}

struct UsageArguments {
  std::string path;
  ListingOptions streams;
};

Result<void> usage(const UsageArguments& arguments, const Style& style) {
  SFS_ASSIGN(ControlClient client, ControlClient::connect(arguments.path));
  SFS_ASSIGN(const json status, client.ask({{"op", "status"}}));
  SFS_ASSIGN(const json streams, client.ask({{"op", "streams"}}));
  const json usage = usage_json(status, streams);
  if (style.json) {
    print_json(usage);
  } else {
    print_usage(usage, arguments.streams, style);
  }
  return {};
}

}  // namespace

json usage_json(const json& status, const json& streams) {
  const json& space = status.at("space");
  json held = json::array();
  for (const json& each : streams.at("streams")) {
    std::string what = each.value("name", "");
    for (const char* other : {"comm", "source"})
      if (what.empty()) what = each.value(other, "");
    held.push_back({{"vstream", count_of(each, "vstream")},
                    {"pstream", count_of(each, "pstream")},
                    {"live_bytes", count_of(each, "live_bytes")},
                    {"written_bytes", count_of(each, "written_bytes")},
                    {"what", std::move(what)}});
  }
  const uint64_t possible = count_of(space, "inodes_possible");
  return {{"uuid", status.value("uuid", "")},
          {"label", status.value("label", "")},
          {"data", data_usage(status)},
          {"meta", meta_usage(status)},
          {"files", {{"possible", possible}, {"used", possible - count_of(space, "inodes_free")}}},
          {"streams", std::move(held)}};
}

void declare_usage(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<UsageArguments>();
  CLI::App* command =
      commands.add(app, "usage", "Print the use of DATA and META, and the free space",
                   [arguments](const Style& style) { return usage(*arguments, style); });
  add_mountpoint(command, arguments->path);
  streams_held().declare(command, arguments->streams);
}

}  // namespace streamfs::tools
