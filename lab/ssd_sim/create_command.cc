// ssd-sim create: makes a new image.
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "base/exit_codes.h"
#include "base/result.h"
#include "lab/ssd_sim/commands.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/presets.h"

namespace streamfs::lab::ssd_sim {
namespace {

std::string preset_help() {
  std::string help = "Take a device by name:";
  for (const ssd::Preset& preset : ssd::presets())
    help += fmt::format("\n{}: {};", preset.name, preset.what);
  return help + "\nthe other options change it.";
}

// Options of the command line override those of the preset.
class CreateCommand final : public Command {
 public:
  explicit CreateCommand(CLI::App& parent)
      : Command(parent.add_subcommand("create", "Make an emulated SSD in an image file.")) {
    app_->add_option("path", path_, "The image file.")->required();
    app_->add_option("--preset", preset_, preset_help());
    app_->add_option("--scale", scale_,
                     "Make the preset N times smaller (1/N) at unchanged ratios: as many blocks, "
                     "each of fewer wordlines.");
    app_->add_option(
            "--ftl", ftl_name_,
            "Map pages by: page-map; emmc, with four streams by context id, copies of all "
            "together, a volatile buffer and contexts that make power-up short; "
            "vstream, whose device measures the lifetimes of vStreams and maps them to its "
            "streams; hybrid, in persistent memory, in one stream; log-block, by blocks and log "
            "blocks, in one stream.")
        ->check(CLI::IsMember({"page-map", "emmc", "vstream", "hybrid", "log-block"}))
        ->capture_default_str();
    size_ = app_->add_option("--size", given_.user_bytes,
                             "Set the capacity that the host sees: 4G, 512M, ...")
                ->transform(CLI::AsSizeValue(false));
    streams_ =
        app_->add_option("--streams", given_.streams,
                         "Make so many streams or reclaim-unit handles, the default one included.")
            ->capture_default_str();
    spare_ = app_->add_option("--op", given_.spare,
                              "Set the spare: spare flash ÷ the capacity that the host sees.")
                 ->capture_default_str();
    pages_ = app_->add_option("--pages-per-block", given_.pages_per_block,
                              "Set the 4 KiB pages of an erase block (default: the preset's; else "
                              "256, fewer on small devices).");
    unit_ = app_->add_option("--map-unit", given_.map_unit_bytes,
                             "Map so many bytes together, 4k to 64k; a smaller write reads the "
                             "unit, changes it and writes it.")
                ->transform(CLI::AsSizeValue(false));
    gc_ = app_->add_option("--gc", given_.gc_mode,
                           "Put copies into: own (persistently-isolated), an open block for the "
                           "copies of each stream; same, the stream's open block; shared "
                           "(initially-isolated), one open block for all.")
              ->transform(CLI::CheckedTransformer(gc_modes()))
              ->option_text("MODE [own]");
    victim_ = app_->add_option("--victim", victim_name_,
                               "Choose the block to collect: greedy, the one with the fewest valid "
                               "pages; cost-benefit, one that is older and not much fuller "
                               "(default: the preset's, greedy; without a preset cost-benefit for "
                               "several streams with --gc own, else greedy).")
                  ->check(CLI::IsMember({"greedy", "cost-benefit"}))
                  ->option_text("POLICY");
    plp_ = app_->add_flag("--plp,!--no-plp", given_.plp,
                          "Give the SSD power-loss protection, which makes a flush free (default: "
                          "the preset's; yes).");
    app_->add_option("--bad-blocks", given_.bad_blocks, "Make so many blocks bad from the start.");
    app_->add_option("--program-failures", program_failures_,
                     "Let this share of wordline programs fail, 0 to 1.");
    app_->add_option("--erase-failures", erase_failures_, "Let this share of erases fail, 0 to 1.");
    app_->add_option("--seed", given_.failures.seed, "Draw bad blocks and failures from this seed.")
        ->capture_default_str();
    app_->add_flag("--force", force_, "Replace an existing file.");
  }

  int run() override {
    const Result<ssd::GeometryRequest> asked = request();
    if (!asked.ok()) return fail(asked.error());
    const Result<ssd::Geometry> geometry = ssd::plan_geometry(*asked);
    if (!geometry.ok()) return fail(geometry.error());
    const Result<void> made = ssd::Image::create(path_, *geometry, force_);
    if (!made.ok()) return fail(made.error());
    fmt::print("{}: {}, {} in {} streams, {} of flash ({} blocks of {} pages), {}\n", path_,
               name_of(geometry->ftl), human_bytes(geometry->user_pages * ssd::kPageBytes),
               geometry->streams, human_bytes(geometry->physical_pages() * ssd::kPageBytes),
               geometry->blocks, geometry->pages_per_block,
               geometry->plp ? "power-loss protected" : "volatile buffer");
    return exit_code::kOk;
  }

 private:
  Result<ssd::GeometryRequest> request() const {
    ssd::GeometryRequest request;
    SFS_ASSIGN(const ssd::FtlKind ftl, ssd::ftl_of(ftl_name_));
    if (ftl == ssd::FtlKind::kEmmc) request = ssd::emmc_request();
    if (ssd::runs_on_nand(ftl)) request = ssd::nand_request(ftl);
    if (!preset_.empty()) {
      SFS_ASSIGN(request, ssd::find_preset(preset_));
    }
    if (!scale_.empty()) SFS_TRY(ssd::scale_down(request, scale_));
    request.ftl = ftl;
    if (preset_.empty() && size_->empty())
      return Error{EINVAL, "impossible geometry: neither --size nor --preset"};
    if (!size_->empty()) request.user_bytes = given_.user_bytes;
    if (!size_->empty() || !spare_->empty()) request.blocks = 0;
    if (!streams_->empty()) request.streams = given_.streams;
    if (!spare_->empty()) request.spare = given_.spare;
    if (!pages_->empty()) request.pages_per_block = given_.pages_per_block;
    if (!unit_->empty()) request.map_unit_bytes = given_.map_unit_bytes;
    if (!gc_->empty()) request.gc_mode = given_.gc_mode;
    if (!victim_->empty()) {
      SFS_ASSIGN(request.victim, ssd::victim_of(victim_name_));
    } else if (preset_.empty() && request.streams > 1 &&
               request.gc_mode == ssd::GcMode::kOwnFrontier) {
      request.victim = ssd::VictimKind::kCostBenefit;  // measured: docs/EXPERIMENTS.md
    }
    if (!plp_->empty()) request.plp = given_.plp;
    request.bad_blocks = given_.bad_blocks;
    SFS_ASSIGN(request.failures.program_per_billion, per_billion(program_failures_));
    SFS_ASSIGN(request.failures.erase_per_billion, per_billion(erase_failures_));
    request.failures.seed = given_.failures.seed;
    return request;
  }

  static Result<uint32_t> per_billion(double rate) {
    if (!(rate >= 0 && rate <= 1))
      return Error{EINVAL, fmt::format("impossible geometry: a failure rate of {}: 0 to 1", rate)};
    return static_cast<uint32_t>(rate * 1e9);
  }

  std::string path_, preset_, scale_, victim_name_, ftl_name_ = "page-map";
  ssd::GeometryRequest given_;
  CLI::Option *size_ = nullptr, *streams_ = nullptr, *spare_ = nullptr, *pages_ = nullptr;
  CLI::Option *unit_ = nullptr, *gc_ = nullptr, *victim_ = nullptr, *plp_ = nullptr;
  double program_failures_ = 0, erase_failures_ = 0;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_create_command(CLI::App& parent) {
  return std::make_unique<CreateCommand>(parent);
}

}  // namespace streamfs::lab::ssd_sim
