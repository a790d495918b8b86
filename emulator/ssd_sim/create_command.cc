// ssd-sim create: a new image.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>

#include "base/exit_codes.h"
#include "base/result.h"
#include "emulator/geometry.h"
#include "emulator/image.h"
#include "emulator/ssd_sim/commands.h"

namespace streamfs::emulator::ssd_sim {
namespace {

class CreateCommand final : public Command {
 public:
  explicit CreateCommand(CLI::App& parent)
      : Command(parent.add_subcommand("create", "Make an emulated SSD in an image file.")) {
    app_->add_option("path", path_, "The image file.")->required();
    app_->add_option("--size", request_.user_bytes, "What the host sees: 4G, 512M, ...")
        ->required()
        ->transform(CLI::AsSizeValue(false));
    app_->add_option("--streams", request_.streams, "Streams, the default one included.")
        ->capture_default_str();
    app_->add_option("--op", request_.spare, "Spare flash ÷ what the host sees.")
        ->capture_default_str();
    app_->add_option("--pages-per-block", request_.pages_per_block,
                     "4 KiB pages of an erase block (default: 256, fewer on small devices).");
    app_->add_option("--gc", request_.gc_mode,
                     "Where copies go: their stream's own open block for copies (own), its open "
                     "block (same), one open block for all (shared).")
        ->transform(CLI::CheckedTransformer(gc_modes()))
        ->default_str("own");
    app_->add_flag("--plp,!--no-plp", request_.plp,
                   "Power-loss protection: a flush is free (default: yes).");
    app_->add_flag("--force", force_, "Replace an existing file.");
  }

  int run() override {
    const Result<Geometry> geometry = plan_geometry(request_);
    if (!geometry.ok()) return fail(geometry.error());
    const Result<void> made = Image::create(path_, *geometry, force_);
    if (!made.ok()) return fail(made.error());
    fmt::print("{}: {} in {} streams, {} of flash ({} blocks of {} pages), {}\n", path_,
               human_bytes(geometry->user_pages * kPageBytes), geometry->streams,
               human_bytes(geometry->physical_pages() * kPageBytes), geometry->blocks,
               geometry->pages_per_block,
               geometry->plp ? "power-loss protected" : "volatile buffer");
    return exit_code::kOk;
  }

 private:
  std::string path_;
  GeometryRequest request_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_create_command(CLI::App& parent) {
  return std::make_unique<CreateCommand>(parent);
}

}  // namespace streamfs::emulator::ssd_sim
