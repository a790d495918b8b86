// ssd-sim model: computes write amplification in closed form (formulas/waf.h), to compare a
// simulation with.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string>

#include "base/exit_codes.h"
#include "base/result.h"
#include "base/wire/control.h"
#include "lab/formulas/waf.h"
#include "lab/ssd_sim/commands.h"

namespace streamfs::lab::ssd_sim {
namespace {

struct Inputs {
  double alpha = 1.07;
  uint32_t pages = 256;
  uint32_t choices = 10;
  model::TwoTemperatures heat{0.9, 0.1};
};

using Formula = std::function<double(const Inputs&)>;

const std::map<std::string, Formula>& formulas() {
  static const std::map<std::string, Formula> all = {
      {"greedy", [](const Inputs& in) { return model::greedy_waf(in.pages, in.alpha); }},
      {"fifo", [](const Inputs& in) { return model::fifo_waf(in.alpha); }},
      {"d-choices",
       [](const Inputs& in) { return model::d_choices_waf(in.pages, in.alpha, in.choices); }},
      {"mixed-fifo", [](const Inputs& in) { return model::mixed_fifo_waf(in.alpha, in.heat); }},
      {"split-fifo", [](const Inputs& in) { return model::split_fifo_waf(in.alpha, in.heat); }},
      {"split-greedy",
       [](const Inputs& in) { return model::split_greedy_waf(in.pages, in.alpha, in.heat); }}};
  return all;
}

class ModelCommand final : public Command {
 public:
  explicit ModelCommand(CLI::App& parent)
      : Command(parent.add_subcommand("model",
                                      "Compute the write amplification of random overwrites on a "
                                      "full device by a formula.")) {
    app_->add_option("formula", name_,
                     fmt::format("{}.", fmt::join(formulas() | std::views::keys, ", ")))
        ->required();
    app_->add_option(
            "--alpha", in_.alpha,
            "Set pages of closed blocks ÷ user pages; free and open blocks are not counted.")
        ->check(CLI::Range(1.0001, 100.0))
        ->capture_default_str();
    app_->add_option("--pages-per-block", in_.pages,
                     "Set the pages of a block, for greedy, d-choices and split-greedy.")
        ->check(CLI::Range(2u, 1u << 20))
        ->capture_default_str();
    app_->add_option("--choices", in_.choices, "Draw so many blocks, for d-choices.")
        ->check(CLI::Range(1u, 1u << 20))
        ->capture_default_str();
    app_->add_option("--hot-writes", in_.heat.writes,
                     "With two temperatures, send this share of the writes …")
        ->check(CLI::Range(0.001, 0.999))
        ->capture_default_str();
    app_->add_option("--hot-pages", in_.heat.pages, "… to this share of the pages.")
        ->check(CLI::Range(0.001, 0.999))
        ->capture_default_str();
    app_->add_flag("--json", json_, "Print one JSON object.");
  }

  int run() override {
    const auto found = formulas().find(name_);
    if (found == formulas().end()) {
      (void)fail({EINVAL, fmt::format("no formula '{}'; there are {}", name_,
                                      fmt::join(formulas() | std::views::keys, ", "))});
      return exit_code::kUsage;
    }
    const double waf = found->second(in_);
    if (json_) {
      fmt::print(
          "{}\n",
          nlohmann::json{
              {"schema", wire::kJsonSchema}, {"formula", name_}, {"alpha", in_.alpha}, {"waf", waf}}
              .dump(2));
    } else {
      fmt::print("{:.4f}\n", waf);
    }
    return exit_code::kOk;
  }

 private:
  std::string name_;
  Inputs in_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_model_command(CLI::App& parent) {
  return std::make_unique<ModelCommand>(parent);
}

}  // namespace streamfs::lab::ssd_sim
