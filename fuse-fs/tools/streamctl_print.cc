#include "fuse-fs/tools/streamctl_print.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/table.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

// Describes how requests come from the kernel and go to the device, with reasons.
std::string transports_of(const json& status) {
  const std::string why = status.value("kernel_transport_reason", "");
  std::string out = fmt::format(
      "{} from the kernel{}, {} to the device", status.value("kernel_transport", ""),
      why.empty() ? "" : " (" + why + ")", printable(status.value("device_transport", "")));
  if (const uint64_t faults = count_of(status, "ring_major_faults"); faults > 0)
    out += fmt::format("; {} page faults of ring threads waited for a disk", faults);
  return out;
}

// Describes how the device keeps pStreams apart, or why it does not.
std::string mechanism_of(const json& status) {
  const std::string mechanism = status.value("device_mechanism", "none");
  if (mechanism != "none") return "by " + mechanism;
  const std::string why = status.value("device_mechanism_reason", "");
  return why.empty() ? "one stream" : "one stream: " + printable(why);
}

// Describes the daemon's model that places data, and how many models the filesystem refused.
std::string model_of(const json& status) {
  const json model = status.value("model", json::object());
  std::string out = "none: no model of classifierd is in use";
  if (model.value("adopted", false)) {
    const std::string kind = model.value("kind", "");
    out = fmt::format("{}table {} of classifierd{}", kind.empty() ? "" : printable(kind) + ", ",
                      count_of(model, "generation"),
                      model.value("stored", false) ? ", from its state directory" : "");
  }
  const uint64_t refused = count_of(model, "refused");
  if (refused == 0) return out;
  return fmt::format("{}; {} refused, the last one: {}", out, refused,
                     printable(model.value("refusal", "")));
}

// Ratios that mean nothing yet are "–": NAND per byte until programs have written much more than
// the metadata of the mount itself, spare while the device is nearly empty.
std::string nand_per_app_byte_text(const json& status) {
  constexpr uint64_t kEnough = 64 << 20;
  return count_of(status, "app_bytes") < kEnough ? "–" : ratio_of(status, "nand_per_app_byte");
}

std::string effective_spare_text(const json& device) {
  constexpr double kNearlyEmpty = 10;  // less than 1/11 of the flash was ever live
  const auto spare = device.find("effective_spare");
  const bool known = spare != device.end() && spare->is_number();
  return known && spare->get<double>() > kNearlyEmpty ? "–" : ratio_of(device, "effective_spare");
}

// The daemon estimates the NAND bytes that streams saved in a period; some estimates have 95 %
// limits.
std::string saved_text(const json& period, const Style& style) {
  const auto at = [&](const char* key) { return period.value(key, int64_t{0}); };
  const auto bytes_at = [&](const char* key) {
    return bytes_text(static_cast<uint64_t>(std::abs(at(key))), style);
  };
  const auto signed_at = [&](const char* key) { return (at(key) < 0 ? "-" : "") + bytes_at(key); };
  const bool has_limits = at("saved_low_bytes") < at("saved_high_bytes");
  return fmt::format("{} an estimated {} of NAND{}", at("saved_bytes") < 0 ? "cost" : "saved",
                     bytes_at("saved_bytes"),
                     has_limits ? fmt::format(" ({} to {})", signed_at("saved_low_bytes"),
                                              signed_at("saved_high_bytes"))
                                : std::string{});
}

void print_saved(const json& status, const Style& style) {
  const auto found = status.find("saved");
  if (found == status.end() || !found->is_object()) return;
  const json& all = found->at("all");
  const auto since = fmt::gmtime(static_cast<time_t>(all.value("since_ms", int64_t{0}) / 1000));
  fmt::print("  streams     {} this month; since {:%Y-%m-%d} {}\n",
             saved_text(found->at("month"), style), since, saved_text(all, style));
}

// The mounted filesystem, and the ways that its requests take.
void print_identity(const json& status, const Style& style) {
  const std::string label = status.value("label", std::string{});
  fmt::print("{} {}{}{}\n", inked("streamfs", Ink::kTitle, style), status.value("uuid", ""),
             label.empty() ? "" : " ", printable(label));
  const std::string mirror = status.value("mirror", "none");
  const std::string trust = status.value("meta_trust", "detected");
  fmt::print("  META        {} ({}{}){}{}\n", status.value("meta_class", ""),
             status.value("meta_medium", ""), trust == "trusted" ? ", trusted" : "",
             status.value("meta_log", false) ? ", logged on DATA" : "",
             mirror == "none" ? std::string{} : ", mirror " + mirror);
  if (mirror == "degraded")
    fmt::print("  {}    {}\n", inked("DEGRADED", Ink::kBad, style),
               printable(status.value("mirror_reason", "")));
  fmt::print("  placement   {}, {}\n", status.value("placement", ""), mechanism_of(status));
  fmt::print("  model       {}\n", model_of(status));
  fmt::print("  requests    {}\n", transports_of(status));
}

void print_space(const json& status, const Style& style) {
  const json& space = status.at("space");
  const uint64_t blocks = count_of(space, "data_blocks");
  fmt::print("  space       {} of data blocks used, {} of files\n",
             percent_text(blocks - count_of(space, "free_blocks"), blocks),
             percent_text(count_of(space, "inodes_possible") - count_of(space, "inodes_free"),
                          count_of(space, "inodes_possible")));
  const json& room = status.at("meta_room");
  fmt::print("  META        {} of {} used{}\n",
             percent_text(count_of(space, "heap_units") - count_of(space, "free_units"),
                          count_of(space, "heap_units")),
             bytes_of(room, "bytes", style),
             room.value("grows", false) ? ", grows to " + bytes_of(room, "bytes_max", style) : "");
  if (const std::string advice = room.value("advice", ""); !advice.empty())
    fmt::print("  {}        {}\n", inked("FULL", Ink::kBad, style), advice);
}

void print_intent_log(const json& status, const Style& style) {
  if (!status.contains("intent_log") || !status.at("intent_log").value("serves", false)) return;
  const json& intent = status.at("intent_log");
  const json& refused = intent.at("refused");
  const uint64_t flushed = count_of(refused, "on_device") + count_of(refused, "large") +
                           count_of(refused, "full") + count_of(refused, "old");
  fmt::print("  intent log  {} of {} used; {} fsyncs, {} others flushed; {} absorbed{}\n",
             bytes_of(intent, "used_bytes", style), bytes_of(intent, "bytes", style),
             count_of(intent, "fsyncs"), flushed, bytes_of(intent, "absorbed_bytes", style),
             intent.value("trust_memory", false) ? "; META is trusted" : "");
}

// Memory of the process, writes that it spared the device, and idle time.
void print_process(const json& status, const Style& style) {
  if (status.contains("memory")) {
    const json& memory = status.at("memory");
    fmt::print("  memory      {} and {} of mapped META; caches {} of at most {}\n",
               bytes_of(memory, "anonymous_bytes", style), bytes_of(memory, "mapped_bytes", style),
               bytes_of(memory, "cache_bytes", style), bytes_of(memory, "cache_bytes_max", style));
  }
  print_intent_log(status, style);
  if (status.contains("never_written_bytes")) {
    fmt::print("  temporary   {} deleted before they were written\n",
               bytes_of(status, "never_written_bytes", style));
  }
  if (status.contains("idle")) {
    const json& idle = status.at("idle");
    fmt::print("  idle time   {} ({}); {} used, {} of them ended by a request, {} copied\n",
               idle.value("state", ""), idle.value("device", ""), count_of(idle, "periods"),
               count_of(idle, "interrupted"), bytes_of(idle, "copied_bytes", style));
  }
}

}  // namespace

void print_status(const json& status, const Style& style) {
  const json& device = status.at("device");
  const json& meta = status.at("meta");
  print_identity(status, style);
  fmt::print("  written     {} by applications, {} to the device, {} NAND\n",
             bytes_of(status, "app_bytes", style), bytes_of(device, "written_bytes", style),
             bytes_of(device, "nand_bytes", style));
  fmt::print("  NAND per application byte {}, WAF {}, effective spare {}\n",
             nand_per_app_byte_text(status), ratio_of(device, "waf"), effective_spare_text(device));
  print_space(status, style);
  fmt::print(
      "  metadata    {} fences, {} lines flushed, {} words programmed ({} of the words of the "
      "blocks changed)\n",
      count_of(meta, "fences"), count_of(meta, "lines_flushed"), count_of(meta, "metadata_words"),
      count_of(meta, "block_words") == 0 ? "–" : ratio_of(meta, "words_ratio"));
  print_process(status, style);
  print_saved(status, style);
  fmt::print("  epochs      {}, {} files dirty, {} checksum errors\n", count_of(status, "epochs"),
             count_of(status, "dirty_inodes"), count_of(status, "checksum_errors"));
  if (status.value("degraded_read_only", false)) {
    fmt::print("  {}   {}\n", inked("READ-ONLY", Ink::kBad, style),
               printable(status.value("degraded_reason", "")));
  }
}

void print_maintenance(const json& run, const Style& style) {
  fmt::print("{}; the device copied {} and erased {} blocks ({})\n",
             run.value("finished", false) ? "nothing is left to do" : "there is more to do",
             bytes_of(run, "copied_bytes", style), count_of(run, "erases"),
             run.value("device", ""));
}

void print_scrub(const json& scrub, const Style& style) {
  fmt::print("scrub {}: {} of about {} inodes, {} of data read, {} damaged, {} mended\n",
             scrub.value("state", ""), count_of(scrub, "inodes"), count_of(scrub, "inodes_in_all"),
             bytes_of(scrub, "bytes", style), count_of(scrub, "damaged"),
             count_of(scrub, "mended"));
  for (const json& finding : scrub.at("findings")) {
    fmt::print("  inode {}: {}\n", count_of(finding, "inode"),
               printable(finding.value("what", "")));
  }
}

void print_grown(const json& grown, const Style& style) {
  const json& before = grown.at("before");
  const json& after = grown.at("after");
  const auto from_to = [](const std::string& from, const std::string& to) {
    return from == to ? fmt::format("stays {}", from) : fmt::format("{} -> {}", from, to);
  };
  fmt::print("DATA   {}{}\n",
             from_to(bytes_of(before, "data_bytes", style), bytes_of(after, "data_bytes", style)),
             grown.value("data_fixed", false) ? " (an emulated SSD cannot grow)" : "");
  fmt::print("META   {}\n",
             from_to(bytes_of(before, "meta_bytes", style), bytes_of(after, "meta_bytes", style)));
  fmt::print("files  {}\n", from_to(fmt::format("{}", count_of(before, "inodes_possible")),
                                    fmt::format("{}", count_of(after, "inodes_possible"))));
  if (before == after) {
    fmt::print("nothing to do\n");
  } else if (grown.value("dry_run", false)) {
    fmt::print("nothing was changed (--dry-run)\n");
  }
}

namespace {

void print_ftl_counts(const json& device) {
  std::string all;
  for (const auto& [name, value] : device.value("ftl_counts", json::object()).items()) {
    std::string words = name;
    std::ranges::replace(words, '_', ' ');
    all += fmt::format("{}{} {}", all.empty() ? "" : ", ", words, value.get<uint64_t>());
  }
  if (!all.empty()) fmt::print("  FTL: {}\n", all);
}

}  // namespace

void print_device(const json& status, const Style& style) {
  const json& device = status.at("device");
  fmt::print("{} device, through {}; {}\n", status.value("device_kind", ""),
             status.value("device_transport", ""), mechanism_of(status));
  fmt::print("  written {}, read {}, trimmed {}, {} flushes\n",
             bytes_of(device, "written_bytes", style), bytes_of(device, "read_bytes", style),
             bytes_of(device, "trimmed_bytes", style), count_of(device, "flushes"));
  fmt::print("  NAND {} (garbage collection {}, padding {}), WAF {}, effective spare {}\n",
             bytes_of(device, "nand_bytes", style), bytes_of(device, "gc_bytes", style),
             bytes_of(device, "pad_bytes", style), ratio_of(device, "waf"),
             effective_spare_text(device));
  fmt::print("  live {}, peak {}\n", bytes_of(device, "live_bytes", style),
             bytes_of(device, "peak_live_bytes", style));
  print_ftl_counts(device);
  Table table({{"pStream"}, {"written"}, {"collected"}});
  for (const json& stream : device.value("streams", json::array())) {
    table.row({fmt::to_string(table.rows()), bytes_of(stream, "written_bytes", style),
               bytes_of(stream, "gc_bytes", style)});
  }
  if (table.rows() != 0) fmt::print("{}", table_text(table, style));
}

namespace {

void print_path(const json& path) {
  const json access = path.value("access", json(nullptr));
  fmt::print("  through {} ({} {}), {}{}\n", path.value("controller", ""),
             path.value("transport", ""), printable(path.value("address", "")),
             path.value("state", ""),
             access.is_string() ? ", " + access.get<std::string>() : std::string());
}

void print_topology(const json& topology) {
  for (const json& path : topology.at("paths")) print_path(path);
  if (topology.at("subsystem").is_string())
    fmt::print("  multipath of {}\n", topology.at("subsystem").get<std::string>());
}

void print_placement(const json& placement) {
  const json& honoured = placement.at("honoured");
  const std::string mechanism = placement.value("mechanism", "");
  fmt::print("  placement {}{}\n", mechanism,
             mechanism == "none"    ? ""
             : honoured.is_null()   ? "; whether it is honoured is not known (--probe asks)"
             : honoured.get<bool>() ? "; honoured"
                                    : "; NOT honoured");
  if (placement.at("why").is_string())
    fmt::print("  {}\n", printable(placement.at("why").get<std::string>()));
}

void print_nvme(const json& device, const Style& style) {
  fmt::print("  model {}, serial {}, firmware {}, namespace {}\n",
             printable(device.value("model", "")), printable(device.value("serial", "")),
             printable(device.value("firmware", "")), count_of(device, "namespace"));
  const json& granularity = device.at("granularity");
  fmt::print("  blocks of {}, written best in {}, trimmed best in {}; {} a command\n",
             bytes_of(granularity, "block_bytes", style),
             bytes_of(granularity, "write_bytes", style),
             bytes_of(granularity, "trim_bytes", style),
             bytes_of(device.at("limits"), "transfer_bytes", style));
  if (const json& streams = device.at("streams"); streams.is_object()) {
    fmt::print("  Streams: {} in all, {} free, {} allocated here, {} open; granularity {}\n",
               count_of(streams, "in_all"), count_of(streams, "free"),
               count_of(streams, "allocated"), count_of(streams, "open"),
               bytes_of(streams, "granularity_bytes", style));
  }
  if (const json& fdp = device.at("fdp"); fdp.is_object()) {
    fmt::print("  FDP: endurance group {}, reclaim units of {}, {} reclaim groups\n",
               count_of(fdp, "endurance_group"), bytes_of(fdp, "reclaim_unit_bytes", style),
               count_of(fdp, "reclaim_groups"));
    for (const json& handle : fdp.at("handles"))
      fmt::print("  placement {:<5} handle {:<3} {}, {} left in its unit\n",
                 count_of(handle, "placement"), count_of(handle, "handle"),
                 handle.value("type", ""), bytes_of(handle, "writable_bytes", style));
  }
  const json& medium = device.at("medium");
  fmt::print("  in its life: {} by hosts, {} NAND, WAF {} (source: {})\n",
             bytes_of(medium, "host_bytes", style), bytes_of(medium, "media_bytes", style),
             ratio_of(medium, "waf"), medium.value("source", ""));
}

// Returns a phrase for a feature that is there, is not there, or is not known.
std::string can(const json& subsystem, const char* key, const char* what) {
  const json& value = subsystem.at(key);
  return value.is_null() ? fmt::format("{} not known", what)
                         : fmt::format("{}{}", value.get<bool>() ? "" : "no ", what);
}

}  // namespace

void print_nvme_list(const json& listed, const Style& style) {
  if (listed.empty())
    fmt::print(
        "No NVMe devices here. DATA can be a block device, a file, or emu:PATH (ssd-sim).\n");
  for (const json& each : listed) {
    fmt::print("{} {}, serial {}, firmware {}; {}, {}\n", each.value("subsystem", ""),
               printable(each.value("model", "")), printable(each.value("serial", "")),
               printable(each.value("firmware", "")), can(each, "fdp", "FDP"),
               can(each, "directives", "directives"));
    for (const json& path : each.at("controllers")) print_path(path);
    for (const json& space : each.at("namespaces")) {
      const json& obstacle = space.at("obstacle");
      fmt::print("  {} (block device {}): {} in blocks of {}{}\n", space.value("generic", ""),
                 space.value("block", ""), bytes_of(space, "capacity_bytes", style),
                 bytes_of(space, "block_bytes", style),
                 obstacle.is_string() ? "; " + obstacle.get<std::string>() : std::string());
    }
    if (each.at("namespaces").empty())
      fmt::print("  no namespace that can be opened{}\n", geteuid() == 0 ? "" : " (ask as root)");
  }
}

void print_described(const json& device, const Style& style) {
  fmt::print("{} device {}\n  {}\n", device.value("kind", ""), device.value("path", ""),
             printable(device.value("identity", "")));
  fmt::print("  {}, {} pStreams, erase unit {}, a flush {}; through {}\n",
             bytes_of(device, "capacity_bytes", style), count_of(device, "pstreams"),
             bytes_of(device, "erase_unit_bytes", style),
             device.value("flush_is_free", false) ? "is free" : "counts",
             device.value("transport", ""));
  if (device.at("topology").is_object()) print_topology(device.at("topology"));
  print_placement(device.at("placement"));
  if (device.contains("model")) print_nvme(device, style);
}

}  // namespace streamfs::tools
