// ssd-sim reproduce: runs published figures again (lab/figures/).
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/exit_codes.h"
#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/report.h"
#include "lab/ssd_sim/commands.h"
#include "lab/ssd_sim/picture.h"
#include "lab/ssd_sim/run_options.h"

namespace streamfs::lab::ssd_sim {
namespace {

using figures::Figure;
using figures::FigureRun;

// Parses a scale: "1/64" is 64.
Result<uint32_t> parse_scale(std::string_view text) {
  uint32_t by = 0;
  const char* end = text.data() + text.size();
  if (text.starts_with("1/"))
    if (const auto [stop, error] = std::from_chars(text.data() + 2, end, by);
        error == std::errc() && stop == end && by > 0)
      return by;
  return Error{EINVAL, fmt::format("--scale {}: must be 1/N", text)};
}

// Says on standard error every 10 s which figure runs, and since when.
class Ticker {
 public:
  explicit Ticker(std::string what)
      : thread_([what = std::move(what)](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any ended;
          std::unique_lock lock(mutex);
          for (int seconds = 10;; seconds += 10) {
            ended.wait_for(lock, stop, std::chrono::seconds(10), [] { return false; });
            if (stop.stop_requested()) return;
            fmt::print(stderr, "ssd-sim: {}, {} s\n", what, seconds);
          }
        }) {}

 private:
  std::jthread thread_;
};

class ReproduceCommand final : public Command {
 public:
  explicit ReproduceCommand(CLI::App& parent)
      : Command(parent.add_subcommand("reproduce",
                                      "Run a published figure again: print the source's numbers "
                                      "beside ours, and the facts that the source omits.")) {
    auto* figure =
        app_->add_option("figure", name_, "The figure; without it, the figures are listed.");
    auto* all = app_->add_flag("--all", all_, "Run every figure.");
    auto* json = app_->add_flag("--json", json_, "Print one JSON object.");
    auto* markdown =
        app_->add_flag("--markdown", markdown_, "Print Markdown, with notes and assumptions.");
    pictures_.add_options(*app_);
    app_->add_option("--seeds", options_.seeds,
                     "Run random parts with so many seeds (default: the figure's).")
        ->check(CLI::Range(1u, 1000u));
    auto* scale = app_->add_option(
        "--scale", scale_, "Make devices 1/N of the source's size (default: the figure's).");
    app_->add_option("--jobs", options_.jobs, "Use so many threads (default: one for each core).")
        ->check(CLI::Range(1u, 1024u));
    all->excludes(figure)->excludes("--png")->excludes("--svg")->excludes(scale);
    markdown->excludes(json);
    app_->footer(kExitCodes);
    options_.jobs = std::max(1u, std::thread::hardware_concurrency());
  }

  int run() override {
    if (name_.empty() && !all_) return list();
    if (!scale_.empty()) {
      const Result<uint32_t> scale = parse_scale(scale_);
      if (!scale.ok()) return fail_run(scale.error());
      options_.scale = *scale;
    }
    std::vector<const Figure*> wanted;
    if (all_) {
      for (const Figure& figure : figures::all_figures()) wanted.push_back(&figure);
    } else {
      const Result<const Figure*> found = figures::find_figure(name_);
      if (!found.ok()) return fail_run(found.error());
      wanted.push_back(*found);
    }
    std::vector<FigureRun> runs;
    for (const Figure* figure : wanted) {
      Result<FigureRun> one = run_one(*figure, runs.size() + 1, wanted.size());
      if (!one.ok())
        return fail_run(
            {one.error().code, fmt::format("{}: {}", figure->name, one.error().context)});
      runs.push_back(std::move(one).value());
      if (!json_ && !markdown_)
        fmt::print("{}{}", runs.size() > 1 ? "\n" : "", text_of(runs.back()));
    }
    if (json_) fmt::print("{}\n", json_of(runs).dump(2));
    if (markdown_) fmt::print("{}", markdown_of(runs));
    if (!pictures_.wanted()) return exit_code::kOk;
    const Result<void> drawn = pictures_.draw(json_of(runs));
    return drawn.ok() ? exit_code::kOk : fail(drawn.error());
  }

 private:
  Result<FigureRun> run_one(const Figure& figure, size_t number, size_t of) const {
    const Ticker ticker(fmt::format("{} (figure {} of {})", figure.name, number, of));
    return figures::run_figure(figure, options_);
  }

  int list() const {
    if (json_ || markdown_ || pictures_.wanted() || !scale_.empty() || options_.seeds != 0)
      return fail_run({EINVAL, "name a figure, or --all"});
    for (const Figure& figure : figures::all_figures())
      fmt::print("{:24}{} ({})\n", figure.name, figure.shows, figure.source);
    return exit_code::kOk;
  }

  std::string name_, scale_;
  PictureFiles pictures_;
  bool all_ = false, json_ = false, markdown_ = false;
  figures::FigureOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_reproduce_command(CLI::App& parent) {
  return std::make_unique<ReproduceCommand>(parent);
}

}  // namespace streamfs::lab::ssd_sim
