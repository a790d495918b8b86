// Kim 2015, figure 3: the gain of trims and discards for random writes and for the flash's life.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/kim_files.h"

namespace streamfs::lab::figures {
namespace {

constexpr std::array<double, 4> kFileShares = {0.04, 0.02, 0.08,
                                               0.16};            // the first is the figure's
constexpr std::array<uint32_t, 4> kDiscardPages = {2, 1, 4, 8};  // the first is the figure's

// The runs of one setup, by seed.
Result<FigureResult> run_kim_fig3(const FigureOptions& options) {
  std::vector<KimFiles> setups;
  for (const double share : kFileShares) {
    setups.push_back({.told = Told::kNothing, .files = share});
    setups.push_back({.told = Told::kTrim, .files = share});
    setups.push_back({.told = Told::kDiscard, .files = share});
  }
  const size_t grouped = setups.size();
  for (const uint32_t pages : kDiscardPages)
    setups.push_back({.told = Told::kDiscard, .discard_pages = pages});
  SFS_ASSIGN(const auto runs, run_files(setups, options));
  FigureResult result;
  result.rows = {{"trim, random writes", "% faster", 25, speed_gain(runs[1], runs[0])},
                 {"discard, random writes", "% faster", 18, speed_gain(runs[2], runs[0])},
                 {"trim, life", "% longer", 8, life_gain(runs[1], runs[0])},
                 {"discard, life", "% longer", 8, life_gain(runs[2], runs[0])}};
  for (size_t i = 1; i < kDiscardPages.size(); ++i)
    result.rows.push_back(
        {fmt::format("discard of whole {} KiB, random writes", 4 * kDiscardPages[i]), "% faster",
         18, speed_gain(runs[grouped + i], runs[0])});
  result.along = "files, % of the device";
  result.height = "random writes, % faster";
  result.curves = {{"trim", {}}, {"discard", {}}};
  for (size_t i = 0; i < kFileShares.size(); ++i) {
    const std::vector<KimRates>& nothing = runs[3 * i];
    const Measured trim = speed_gain(runs[3 * i + 1], nothing),
                   discard = speed_gain(runs[3 * i + 2], nothing);
    const double share = 100 * kFileShares[i];
    result.curves[0].points.emplace_back(share, trim.mean);
    result.curves[1].points.emplace_back(share, discard.mean);
    if (i == 0) continue;
    const std::string where = fmt::format("files {} % of the device", share);
    result.rows.push_back({"trim, random writes, " + where, "% faster", {}, trim});
    result.rows.push_back(
        {"trim, life, " + where, "% longer", {}, life_gain(runs[3 * i + 1], nothing)});
  }
  for (Curve& curve : result.curves) std::ranges::sort(curve.points);
  result.notes = {
      "The gain of trims depends on the fill, on how much is deleted, and on how much is written "
      "before it is written again. The source says none of it. Files of 4 % and rounds of a 20th "
      "were chosen because trims then gain as much as in the source, in speed and in lifetime: "
      "both are fitted, not confirmed. Figure 4 follows from the same values.",
      "Trims save no erases of the files' own writes. Such erases count for lifetime, not for "
      "speed.",
      "The source does not say why discards gain less. A device may ignore a discard (eMMC 4.5). "
      "Here a discard frees whole flash pages of 8 KiB and a trim each mapped page of 4 KiB; this "
      "too was chosen. Larger units find next to nothing in such files."};
  return result;
}

}  // namespace

Figure kim2015_fig3() {
  return {
      .name = "kim2015-fig3",
      .source = "Kim 2015, figure 3",
      .shows = "the gain of trims and of discards in random write speed and lifetime, over neither",
      .unsaid = {"the workload, how full the device is, how much is deleted",
                 "how the device treats a trim differently from a discard",
                 "the geometry, spare and mapping of the eMMC; how lifetime was measured"},
      .assumed = {"16 GiB eMMC of two MLC dies of 2012 (25 nm: 8 KiB pages, 1.3 ms to program, "
                  "75 µs to read, 3.8 ms to erase), 7 % spare, 4 KiB mapped, interface of 200 "
                  "MB/s, greedy collection; a host that sends the next write as soon as it may",
                  "the device is 90 % full; 4 % of it is files of 4 to 32 KiB; half of the files "
                  "are deleted, then a 20th of the device is written at random, then the files are "
                  "written again",
                  "lifetime is host bytes per erase, over all of this work"},
      .seeds = 3,
      .scale = 16,
      .smallest = 64,
      .run = run_kim_fig3};
}

}  // namespace streamfs::lab::figures
