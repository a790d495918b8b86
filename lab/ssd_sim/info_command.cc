// ssd-sim info and reset-stats: both work while another process holds the image.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/exit_codes.h"
#include "base/result.h"
#include "base/table.h"
#include "base/wire/control.h"
#include "lab/ssd_sim/commands.h"
#include "ssd/background.h"
#include "ssd/geometry.h"
#include "ssd/layout.h"
#include "ssd/ssd.h"
#include "ssd/stats.h"

namespace streamfs::lab::ssd_sim {
namespace {

const char* name_of(ssd::Cell cell) {
  return cell == ssd::Cell::kSlc ? "SLC" : cell == ssd::Cell::kMlc ? "MLC" : "TLC";
}

nlohmann::json nand_json(const ssd::NandShape& nand) {
  return {{"channels", nand.channels},
          {"chips", nand.chips},
          {"dies", nand.dies},
          {"planes", nand.planes},
          {"wordlines", nand.wordlines},
          {"cell", name_of(nand.cell)},
          {"wordline_pages", nand.wordline_pages()}};
}

std::string ratio(std::optional<double> value) {
  return value ? fmt::format("{:.3f}", *value) : "none yet";
}

class InfoCommand final : public Command {
 public:
  explicit InfoCommand(CLI::App& parent)
      : Command(parent.add_subcommand("info", "Show an image's geometry and statistics.")) {
    app_->add_option("path", path_, "The image file.")->required();
    app_->add_flag("--json", json_, "Print one JSON object.");
  }

  int run() override {
    ssd::Geometry geometry;
    std::string uuid;
    const Result<ssd::SsdStats> stats = ssd::observe_stats(path_, &geometry, &uuid);
    if (!stats.ok()) return fail(stats.error());
    if (json_)
      print_json(*stats, geometry, uuid);
    else
      print_text(*stats, geometry, uuid);
    return exit_code::kOk;
  }

 private:
  void print_json(const ssd::SsdStats& stats, const ssd::Geometry& geometry,
                  const std::string& uuid) const {
    nlohmann::json json = to_json(stats);
    json["schema"] = wire::kJsonSchema;
    json["path"] = path_;
    json["uuid"] = uuid;
    json["image_version"] = ssd::kImageVersion;
    json["user_bytes"] = geometry.user_pages * ssd::kPageBytes;
    json["pages_per_block"] = geometry.pages_per_block;
    json["blocks"] = geometry.blocks;
    json["stream_count"] = geometry.streams;
    json["plp"] = geometry.plp;
    json["map_unit_bytes"] = geometry.map_unit_pages * ssd::kPageBytes;
    json["nand"] = nand_json(geometry.nand);
    json["ftl"] = name_of(geometry.ftl);
    json["gc_mode"] = name_of(geometry.gc_mode);
    json["victim"] = name_of(geometry.victim);
    json["free_blocks"] = stats.free_blocks;
    json["urgency"] = name_of(stats.urgency);
    json["damaged_pages"] = stats.damaged_pages;
    fmt::print("{}\n", json.dump(2));
  }

  void print_text(const ssd::SsdStats& stats, const ssd::Geometry& geometry,
                  const std::string& uuid) const {
    fmt::print("{}: emulated SSD {}, FTL {}\n", path_, uuid, name_of(geometry.ftl));
    fmt::print("  capacity     {} for the host, {} of flash, {} pages a block, {} streams, {}\n",
               human_bytes(geometry.user_pages * ssd::kPageBytes),
               human_bytes(stats.physical_bytes), geometry.pages_per_block, geometry.streams,
               geometry.plp ? "power-loss protected" : "volatile buffer");
    fmt::print(
        "  NAND         {} channels × {} chips × {} dies × {} planes, {} wordlines a block, {}, "
        "map unit {}\n",
        geometry.nand.channels, geometry.nand.chips, geometry.nand.dies, geometry.nand.planes,
        geometry.nand.wordlines, name_of(geometry.nand.cell),
        human_bytes(geometry.map_unit_pages * ssd::kPageBytes));
    if (geometry.ftl == ssd::FtlKind::kLogBlock)
      fmt::print("  collects     the log block that was written longest ago\n");
    else
      fmt::print("  collects     {} victims, copies to {}\n", name_of(geometry.victim),
                 name_of(geometry.gc_mode));
    fmt::print("  live         {}, peak {}; effective spare {}\n", human_bytes(stats.live_bytes),
               human_bytes(stats.peak_live_bytes), ratio(stats.effective_spare()));
    fmt::print(
        "  written      {} by the host, {} by garbage collection, {} padding, {} by "
        "read-modify-write; WAF {}\n",
        human_bytes(stats.written_bytes), human_bytes(stats.gc_bytes), human_bytes(stats.pad_bytes),
        human_bytes(stats.rmw_bytes), ratio(stats.waf()));
    fmt::print("  read         {}; trimmed {}; {} flushes; {} erases\n",
               human_bytes(stats.read_bytes), human_bytes(stats.trimmed_bytes), stats.flushes,
               stats.erases);
    fmt::print(
        "  collection   {} free blocks, urgency {}; {} copied while idle, {} to level wear\n",
        stats.free_blocks, name_of(stats.urgency), human_bytes(stats.idle_gc_bytes),
        human_bytes(stats.wear_bytes));
    fmt::print(
        "  virtual time {:.0f} / {:.0f} / {:.0f} µs a write, {:.0f} / {:.0f} / {:.0f} µs a read "
        "(p50 / p99 / p99.9)\n",
        stats.time.write.p50_us, stats.time.write.p99_us, stats.time.write.p999_us,
        stats.time.read.p50_us, stats.time.read.p99_us, stats.time.read.p999_us);
    fmt::print("               {:.0f} MB/s if saturated; work-conserving bound {:.0f} MB/s\n",
               stats.time.simulated_mb_per_s, stats.time.bound_mb_per_s);
    for (const auto& [name, value] : stats.ftl_counts) {
      std::string words(name);
      std::ranges::replace(words, '_', ' ');
      fmt::print("  {:<12} {}\n", words, value);
    }
    if (stats.bad_blocks > 0)
      fmt::print("  bad          {} blocks; {} program and {} erase failures\n", stats.bad_blocks,
                 stats.program_failures, stats.erase_failures);
    if (stats.media_errors > 0)
      fmt::print("  lost         {} reads of data that does not fit its checksum\n",
                 stats.media_errors);
    if (stats.damaged_pages > 0)
      fmt::print("  damaged      {} pages found at the last open\n", stats.damaged_pages);
    Table table({{"  stream"}, {"written"}, {"copied"}});
    for (size_t i = 0; i < stats.streams.size(); ++i)
      table.row({fmt::to_string(i), human_bytes(stats.streams[i].written_bytes),
                 human_bytes(stats.streams[i].gc_bytes)});
    fmt::print("{}", table.text());
  }

  std::string path_;
  bool json_ = false;
};

class ResetStatsCommand final : public Command {
 public:
  explicit ResetStatsCommand(CLI::App& parent)
      : Command(parent.add_subcommand("reset-stats",
                                      "Set the counters to zero; peak live becomes live.")) {
    app_->add_option("path", path_, "The image file.")->required();
  }

  int run() override {
    const Result<void> done = ssd::reset_stats(path_);
    return done.ok() ? exit_code::kOk : fail(done.error());
  }

 private:
  std::string path_;
};

}  // namespace

std::unique_ptr<Command> make_info_command(CLI::App& parent) {
  return std::make_unique<InfoCommand>(parent);
}

std::unique_ptr<Command> make_reset_stats_command(CLI::App& parent) {
  return std::make_unique<ResetStatsCommand>(parent);
}

}  // namespace streamfs::lab::ssd_sim
