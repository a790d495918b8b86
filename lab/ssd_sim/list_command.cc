// ssd-sim list: lists all names for the command line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/exit_codes.h"
#include "base/table.h"
#include "base/wire/control.h"
#include "lab/import/import.h"
#include "lab/placement/policy.h"
#include "lab/ssd_sim/commands.h"
#include "lab/workload/generator.h"
#include "ssd/presets.h"
#include "ssd/victim/registry.h"

namespace streamfs::lab::ssd_sim {
namespace {

// Returns a line with name and description for each item.
std::string described(const auto& all) {
  using enum Table::Align;
  Table table({{"  name", kLeft}, {"what", kLeft}});
  for (const auto& each : all) table.row({fmt::format("  {}", each.name), std::string(each.what)});
  return table.body();
}

class ListCommand final : public Command {
 public:
  explicit ListCommand(CLI::App& parent)
      : Command(parent.add_subcommand(
            "list", "List placements, victims, workloads, device presets and trace formats.")) {
    app_->add_flag("--json", json_, "Print one JSON object.");
  }

  int run() override {
    if (json_) {
      nlohmann::json json = {
          {"schema", wire::kJsonSchema},        {"placements", placement_names()},
          {"victims", ssd::victim_names()},     {"workloads", nlohmann::json::array()},
          {"presets", nlohmann::json::array()}, {"import_formats", import_formats()}};
      for (const GeneratorKind& kind : generators())
        json["workloads"].push_back(
            {{"name", kind.name}, {"what", kind.what}, {"streams", kind.streams}});
      for (const ssd::Preset& preset : ssd::presets())
        json["presets"].push_back({{"name", preset.name}, {"what", preset.what}});
      fmt::print("{}\n", json.dump(2));
      return exit_code::kOk;
    }
    fmt::print("placements  {}\n", fmt::join(placement_names(), " "));
    fmt::print("victims     {}\n", fmt::join(ssd::victim_names(), " "));
    fmt::print("formats     {}\n", fmt::join(import_formats(), " "));
    fmt::print("workloads\n{}", described(generators()));
    fmt::print("presets\n{}", described(ssd::presets()));
    return exit_code::kOk;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_list_command(CLI::App& parent) {
  return std::make_unique<ListCommand>(parent);
}

}  // namespace streamfs::lab::ssd_sim
