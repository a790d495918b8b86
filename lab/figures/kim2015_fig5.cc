// Kim 2015, figure 5: the background command before each power-off.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/kim_device.h"
#include "lab/figures/parallel.h"
#include "lab/figures/report.h"
#include "ssd/background.h"
#include "ssd/counters.h"

namespace streamfs::lab::figures {
namespace {

constexpr std::array<double, 3> kUtilisations = {0.5, 0.7, 0.9};
constexpr std::array<double, 3> kBursts = {0.01, 0.05, 0.2};  // of the spare
constexpr std::array<double, 3> kIdleSeconds = {1, 10, 60};
constexpr double kAnyCost = 1000;     // the most that the command may pay for a page given back
constexpr double kSmallSpare = 0.02;  // with twelve more blocks: 3 %

// Three ways to power off: without the command, with the device's default work in idle time, and
// with all work that there is.
enum class Command : uint8_t { kNone, kDefault, kEverything };
constexpr size_t kCommands = 3;

struct Bursty {
  double utilisation = 0, burst = 0, idle_seconds = 0;
  bool small_spare = false;
};

struct BurstRates {
  double mb_per_s = 0, waf = 0, erases = 0;
};

const std::vector<Bursty>& all_bursty() {
  static const std::vector<Bursty> all = [] {
    std::vector<Bursty> made;
    for (const bool small_spare : {false, true})
      for (const double utilisation : kUtilisations)
        for (const double burst : kBursts)
          for (const double idle_seconds : kIdleSeconds)
            if (!small_spare || idle_seconds == kIdleSeconds.back())
              made.push_back({utilisation, burst, idle_seconds, small_spare});
    return made;
  }();
  return all;
}

class BurstHost {
 public:
  BurstHost(const Bursty& setup, Command command, uint32_t scale, uint64_t seed, KimDevice& device)
      : device_(device),
        live_(static_cast<uint32_t>(setup.utilisation * device.geometry().user_pages)),
        burst_(std::max(1U, static_cast<uint32_t>(setup.burst * device.spare_pages()))),
        idle_ns_(static_cast<uint64_t>(setup.idle_seconds * 1e9 / scale)),
        work_(command != Command::kNone),
        random_(seed) {}

  Result<BurstRates> run() {
    const uint64_t device = device_.geometry().user_pages;
    for (uint32_t page = 0; page < live_; ++page) SFS_TRY(device_.write(page, 1));
    for (uint64_t i = 0; i < device; ++i) SFS_TRY(device_.write(random_.below(live_), 1));
    SFS_TRY(bursts(device));
    const ssd::Counters before = device_.counters();
    SFS_TRY(bursts(2 * device));
    return BurstRates{device_.mb_per_s(before), device_.waf(before),
                      static_cast<double>(device_.counters().erases - before.erases)};
  }

 private:
  // Writes bursts, each followed by power-off.
  Result<void> bursts(uint64_t pages) {
    for (uint64_t written = 0; written < pages; written += burst_) {
      for (uint32_t i = 0; i < burst_; ++i) SFS_TRY(device_.write(random_.below(live_), 1));
      device_.idle(idle_ns_, work_);
    }
    return {};
  }

  KimDevice& device_;
  const uint32_t live_, burst_;
  const uint64_t idle_ns_;
  const bool work_;
  Random random_;
};

Result<BurstRates> run_bursts(const Bursty& setup, Command command, uint32_t scale, uint64_t seed) {
  KimSetup device_setup{.scale = scale};
  if (setup.small_spare) device_setup.spare = kSmallSpare;
  if (command == Command::kEverything) device_setup.dearer = kAnyCost;
  SFS_ASSIGN(const std::unique_ptr<KimDevice> device, KimDevice::make(device_setup));
  return BurstHost(setup, command, scale, seed, *device).run();
}

// Rates by setup, command and seed.
class KimFig5 {
 public:
  using Which = std::function<bool(const Bursty&)>;

  explicit KimFig5(const FigureOptions& options) : options_(options) {}

  Result<void> run() {
    const size_t seeds = options_.seeds;
    rates_.resize(all_bursty().size() * kCommands * seeds);
    return in_parallel(options_.jobs, rates_.size(), [&](size_t i) -> Result<void> {
      const auto command = static_cast<Command>(i / seeds % kCommands);
      SFS_ASSIGN(rates_[i], run_bursts(all_bursty()[i / seeds / kCommands], command, options_.scale,
                                       i % seeds + 1));
      return {};
    });
  }

  // Returns the % by which writes are faster than without the command, the mean over these setups.
  Measured gain(Command command, const Which& which) const {
    return over_setups(command, which, [](const BurstRates& with, const BurstRates& without) {
      return 100 * (with.mb_per_s / without.mb_per_s - 1);
    });
  }
  Measured erases(Command command, const Which& which) const {
    return over_setups(command, which, [](const BurstRates& with, const BurstRates& without) {
      return 100 * (with.erases / without.erases - 1);
    });
  }
  // Returns NAND bytes with the command ÷ without, in the setup where that is largest.
  Measured most_nand(Command command) const {
    std::vector<double> most(options_.seeds);
    for (size_t setup = 0; setup < all_bursty().size(); ++setup)
      for (size_t seed = 0; seed < most.size(); ++seed)
        most[seed] = std::max(most[seed],
                              at(setup, command, seed).waf / at(setup, Command::kNone, seed).waf);
    return over_seeds(most);
  }

 private:
  const BurstRates& at(size_t setup, Command command, size_t seed) const {
    return rates_[(setup * kCommands + static_cast<size_t>(command)) * options_.seeds + seed];
  }
  template <typename Value>
  Measured over_setups(Command command, const Which& which, Value value) const {
    std::vector<double> means;
    for (size_t seed = 0; seed < options_.seeds; ++seed) {
      std::vector<double> values;
      for (size_t setup = 0; setup < all_bursty().size(); ++setup)
        if (which(all_bursty()[setup]))
          values.push_back(value(at(setup, command, seed), at(setup, Command::kNone, seed)));
      means.push_back(over_seeds(values).mean);
    }
    return over_seeds(means);
  }

  const FigureOptions options_;
  std::vector<BurstRates> rates_;
};

std::string one_second_of(const KimFig5& figure) {
  constexpr double kHalf = 0.5;
  std::string enough;
  for (const double burst : kBursts) {
    for (const double utilisation : kUtilisations) {
      const auto gain = [&](double idle) {
        return figure
            .gain(Command::kEverything,
                  [&](const Bursty& s) {
                    return !s.small_spare && s.idle_seconds == idle && s.burst == burst &&
                           s.utilisation == utilisation;
                  })
            .mean;
      };
      const double most = gain(kIdleSeconds.back());
      if (most <= 0 || gain(kIdleSeconds.front()) < kHalf * most) continue;
      enough += fmt::format("{}{:.0f} % at {:.0f} % full", enough.empty() ? "" : ", ", 100 * burst,
                            100 * utilisation);
    }
  }
  return fmt::format(
      "The command that does everything gets at least half of its gain within {} s for {}.",
      kIdleSeconds.front(),
      enough.empty() ? "no burst" : "bursts of " + enough + " (% of the spare)");
}

std::vector<std::string> kim_fig5_findings(const KimFig5& figure) {
  constexpr double kLimit = 1.05;
  const Measured nand = figure.most_nand(Command::kDefault);
  return {fmt::format("The default limits program at most {} times the NAND bytes of no command, "
                      "which is {} their limit of {}.",
                      rounded(nand.most), nand.most <= kLimit ? "within" : "beyond", kLimit),
          one_second_of(figure)};
}

Result<FigureResult> run_kim_fig5(const FigureOptions& options) {
  KimFig5 figure(options);
  SFS_TRY(figure.run());
  FigureResult result;
  const auto normal = [](const Bursty& setup) { return !setup.small_spare; };
  const auto long_idle = [&](const Bursty& setup) {
    return normal(setup) && setup.idle_seconds == kIdleSeconds.back();
  };
  const auto row = [&](const std::string& label, Command command, const KimFig5::Which& which,
                       std::optional<double> paper) {
    result.rows.push_back({label, "% faster", paper, figure.gain(command, which)});
  };
  row("the command does everything, 60 s", Command::kEverything, long_idle, 173);
  row("default limits, 60 s", Command::kDefault, long_idle, 173);
  row("default limits, all", Command::kDefault, normal, 173);
  for (const double idle : kIdleSeconds)
    row(fmt::format("everything, {} s", idle), Command::kEverything,
        [&](const Bursty& s) { return normal(s) && s.idle_seconds == idle; }, {});
  result.along = "utilisation, %";
  result.height = "random writes, % faster";
  for (const double burst : kBursts) {
    Curve curve{fmt::format("bursts of {:.0f} % of the spare", 100 * burst), {}};
    for (const double utilisation : kUtilisations) {
      const auto one = [&](const Bursty& s) {
        return long_idle(s) && s.burst == burst && s.utilisation == utilisation;
      };
      const std::string where =
          fmt::format("{:.0f} % full, bursts of {:.0f} %, 60 s", 100 * utilisation, 100 * burst);
      row("everything, " + where, Command::kEverything, one, {});
      row("default, " + where, Command::kDefault, one, {});
      curve.points.emplace_back(100 * utilisation, figure.gain(Command::kEverything, one).mean);
    }
    result.curves.push_back(std::move(curve));
  }
  row(
      "default limits, 3 % spare, 60 s", Command::kDefault,
      [](const Bursty& s) { return s.small_spare; }, 173);
  result.rows.push_back(
      {"everything, 60 s, erases", "% more", {}, figure.erases(Command::kEverything, long_idle)});
  result.rows.push_back(
      {"default limits, NAND bytes at most", "× none", {}, figure.most_nand(Command::kDefault)});
  result.rows.push_back(
      {"everything, NAND bytes at most", "× none", {}, figure.most_nand(Command::kEverything)});
  result.findings = kim_fig5_findings(figure);
  result.notes = {
      "A burst that finds free blocks runs as if there were no copies. The most that can be gained "
      "is therefore the time of copies and erases without the command, which is little on a device "
      "that is half full.",
      "The default limits were chosen on bench/maintain's device, for at most 1.05 times the NAND "
      "bytes. On a fuller device, early collection costs more.",
      "The gain needs flash that is slower than the interface, as in 2012. If the interface is "
      "slower, it alone limits a burst, and the command gains next to nothing."};
  return result;
}

}  // namespace

Figure kim2015_fig5() {
  return {
      .name = "kim2015-fig5",
      .source = "Kim 2015, figure 5",
      .shows =
          "random writes in bursts, with and without the background command before each power-off, "
          "by fill",
      .unsaid =
          {"the fills, how much is written between two power-offs, how long the command may take",
           "which background work the device does by itself",
           "the speed of the eMMC's flash and interface"},
      .assumed =
          {"device as kim2015-fig3; uniform random writes to the written part, which is 50, 70 or "
           "90 % of the device, in bursts of 1, 5 or 20 % of the spare, each before 1, 10 or 60 s "
           "of idle time; on a device N times smaller, burst and time are N times smaller",
           fmt::format(
               "everything: the device collects until as many blocks are free as the last bursts "
               "took, at most half of the spare; default limits: as in Ssd::run_idle, a freed page "
               "may cost at most {} times as much as in the host's own collections",
               ssd::IdleLimits{}.dearer),
           "means are over fills and bursts"},
      .seeds = 3,
      .scale = 16,
      .smallest = 128,
      .run = run_kim_fig5};
}

}  // namespace streamfs::lab::figures
