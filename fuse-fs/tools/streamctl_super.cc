#include "fuse-fs/tools/streamctl_super.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <string.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/table.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/frontend/status_json.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/pair.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/output.h"
#include "pmem/region.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

constexpr double kSuperWaitSeconds = 1;

struct SuperArguments {
  std::string data, meta;
};

template <size_t N>
std::string padded(const char (&text)[N]) {
  return {text, strnlen(text, N)};
}

// A superblock whose checksum is right may have an impossible geometry.
uint64_t segments_of(const meta::Superblock& super) {
  const auto geometry = meta::Geometry::from(super);
  return geometry.ok() ? geometry->intent_segments() : 0;
}

json super_json(const meta::Superblock& super) {
  json features = json::array();
  if ((super.features & meta::kFeatureChecksums) != 0) features.push_back("checksums");
  if ((super.features & meta::kFeatureMetaLog) != 0) features.push_back("metadata log");
  if ((super.features & meta::kFeatureMirror) != 0) features.push_back("mirror");
  if ((super.features & meta::kFeatureIntentLog) != 0) features.push_back("intent log");
  if ((super.features & meta::kFeatureDeclared) != 0) features.push_back("declared persistent");
  if ((super.features & meta::kFeatureTrustMemory) != 0) features.push_back("trusted memory");
  return {{"version", super.version},
          {"generation", super.generation},
          {"uuid", frontend::uuid_text(super.uuid)},
          {"label", padded(super.label)},
          {"data_identity", padded(super.data_identity)},
          {"features", std::move(features)},
          {"meta_class", pmem::to_string(static_cast<pmem::MetaClass>(super.meta_class))},
          {"created_seconds", super.created_seconds},
          {"clean", super.clean != 0},
          {"used_inodes", super.clean_used_inodes},
          {"inodes_possible", meta::inodes_possible(super, super.meta_size)},
          {"attachments", super.attachments},
          {"mirror_token", super.mirror_token},
          {"ring_count", super.ring_count},
          {"intent_log_segments", segments_of(super)},
          {"layout", frontend::layout_json(super)}};
}

json log_json(const meta::DataLabel& label) {
  if (label.log_first_block == 0) return {};
  return {{"first_block", label.log_first_block},
          {"bytes", label.log_blocks * kBlockSize},
          {"snapshot_bytes", meta::snapshot_capacity(label) * kBlockSize}};
}

Result<json> read_super(const SuperArguments& arguments) {
  blockdev::OpenOptions open;
  open.read_only = true;
  open.wait_seconds = kSuperWaitSeconds;
  SFS_ASSIGN(const auto device, blockdev::open_device(absolute_data(arguments.data), open));
  SFS_ASSIGN(const meta::DataLabel label, pair::read_label(*device));
  SFS_ASSIGN(const std::optional<pair::Attached> attached, pair::read_attachments(*device));
  json out = {{"data", arguments.data},
              {"device", device->info().kind},
              {"device_identity", device->info().identity},
              {"device_bytes", device->info().capacity_blocks * kBlockSize},
              {"attachments", attached ? json(attached->count) : json()},
              {"label", super_json(label.geometry)},
              {"log", log_json(label)},
              {"meta", nullptr}};
  if (arguments.meta.empty()) return out;
  pmem::OpenOptions region;
  region.read_only = true;
  region.wait_seconds = kSuperWaitSeconds;
  SFS_ASSIGN(const auto meta, pmem::open_region(absolute_path(arguments.meta), region));
  SFS_ASSIGN(const meta::Superblock super, meta::load_superblock(*meta, false));
  SFS_TRY(pair::check_pair(super, label, device->info()));
  out["meta"] = super_json(super);
  out["meta"]["medium"] = meta->medium();
  return out;
}

void line(const char* name, const std::string& value) {
  fmt::print("  {:<18}{}\n", name, printable(value));
}

std::string date_text(uint64_t seconds) {
  const std::chrono::sys_seconds when{std::chrono::seconds(seconds)};
  return seconds == 0 ? "unknown" : fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", when);
}

std::string joined(const json& words) {
  std::string out;
  for (const json& each : words) out += (out.empty() ? "" : ", ") + each.get<std::string>();
  return out.empty() ? "none" : out;
}

void print_one(const char* title, const json& super, const Style& style) {
  fmt::print("{}\n", inked(title, Ink::kTitle, style));
  line("uuid", super.value("uuid", ""));
  line("label", super.value("label", ""));
  line("format version", fmt::to_string(count_of(super, "version")));
  line("features", joined(super.at("features")));
  line("created", date_text(count_of(super, "created_seconds")));
  line("META class", super.value("meta_class", ""));
  line("generation", fmt::to_string(count_of(super, "generation")));
  line("attachments", fmt::to_string(count_of(super, "attachments")));
  const json& layout = super.at("layout");
  if (!layout.is_object()) return line("layout", "makes no sense");
  line("DATA", bytes_of(layout, "data_bytes", style));
  line("  reserved", bytes_of(layout, "reserved_bytes", style));
  line("META", bytes_of(layout, "meta_bytes", style));
  line("  journal", fmt::format("{}, {} rings", bytes_of(layout, "journal_bytes", style),
                                count_of(super, "ring_count")));
  if (const uint64_t segments = count_of(super, "intent_log_segments"); segments > 0)
    line("  intent log",
         fmt::format("{}, {} segments", bytes_of(layout, "intent_log_bytes", style), segments));
  line("  checksums", bytes_of(layout, "checksum_bytes", style));
  line("  heap", bytes_of(layout, "heap_bytes", style));
  line("files that fit", "about " + count_text(count_of(super, "inodes_possible"), style));
}

void print_super(const json& super, const Style& style) {
  fmt::print("{}: {} device of {}, {}\n", super.value("data", ""), super.value("device", ""),
             bytes_of(super, "device_bytes", style), printable(super.value("device_identity", "")));
  print_one("DATA's label", super.at("label"), style);
  line("made on", super.at("label").value("data_identity", ""));
  const json& log = super.at("log");
  line("metadata log",
       log.is_null()
           ? "none"
           : fmt::format("{} from block {} on, snapshots {}", bytes_of(log, "bytes", style),
                         count_of(log, "first_block"), bytes_of(log, "snapshot_bytes", style)));
  line("attached", super.at("attachments").is_null()
                       ? "unknown"
                       : fmt::format("{} times", count_of(super, "attachments")));
  const json& meta = super.at("meta");
  if (meta.is_null()) return;
  print_one("META's superblock", meta, style);
  line("medium", meta.value("medium", ""));
  line("state", meta.value("clean", false)
                    ? fmt::format("clean, {} inodes in use", count_of(meta, "used_inodes"))
                    : "not unmounted in an orderly way");
}

Result<void> show_super(const SuperArguments& arguments, const Style& style) {
  log_to_stderr(Talk::kWarnings);
  SFS_ASSIGN(const json super, read_super(arguments));
  if (style.json) {
    print_json(super);
  } else {
    print_super(super, style);
  }
  return {};
}

}  // namespace

void declare_show_super(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<SuperArguments>();
  CLI::App* command =
      commands.add(app, "show-super", "Print the label of an unmounted DATA, and META's superblock",
                   [arguments](const Style& style) { return show_super(*arguments, style); });
  command->add_option("DATA", arguments->data, "The data device")->required();
  command->add_option("--meta", arguments->meta,
                      "Print the superblock of this metadata device, too");
}

}  // namespace streamfs::tools
