// Kim 2015, figure 4: trims and discards that end on page boundaries, and others.
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/kim_files.h"

namespace streamfs::lab::figures {
namespace {

Result<FigureResult> run_kim_fig4(const FigureOptions& options) {
  constexpr double kMore = 0.06;    // of the device
  constexpr uint32_t kLarge = 256;  // pages: 1 MiB
  const std::vector<KimFiles> setups = {
      {.told = Told::kTrim},
      {.told = Told::kTrim, .misaligned = true},
      {.told = Told::kDiscard},
      {.told = Told::kDiscard, .misaligned = true},
      {.told = Told::kNothing},
      {.told = Told::kTrim, .files = kMore},
      {.told = Told::kTrim, .misaligned = true, .files = kMore},
      {.told = Told::kTrim, .file_pages = kLarge},
      {.told = Told::kTrim, .misaligned = true, .file_pages = kLarge},
  };
  SFS_ASSIGN(const auto runs, run_files(setups, options));
  FigureResult result;
  result.rows = {
      {"trim, aligned over misaligned, random writes", "% faster", 10,
       speed_gain(runs[0], runs[1])},
      {"trim, aligned over misaligned, life", "% longer", 13, life_gain(runs[0], runs[1])},
      {"discard, aligned over misaligned, random writes", "% faster", 10,
       speed_gain(runs[2], runs[3])},
      {"discard, aligned over misaligned, life", "% longer", 13, life_gain(runs[2], runs[3])},
      {"trim, misaligned, over none, random writes", "% faster", {}, speed_gain(runs[1], runs[4])},
      {"trim, files 6 % of the device, aligned over misaligned, random writes", "% faster", 10,
       speed_gain(runs[5], runs[6])},
      {"trim, files 6 % of the device, aligned over misaligned, life", "% longer", 13,
       life_gain(runs[5], runs[6])},
      {"trim, files of up to 1 MiB, aligned over misaligned, random writes",
       "% faster",
       {},
       speed_gain(runs[7], runs[8])},
      {"trim, files of up to 1 MiB, aligned over misaligned, life",
       "% longer",
       {},
       life_gain(runs[7], runs[8])}};
  result.notes = {
      "A page that a trim covers only in part stays, because it holds other data. Files of few "
      "pages therefore gain most from alignment, and large ones next to nothing."};
  return result;
}

}  // namespace

Figure kim2015_fig4() {
  return {
      .name = "kim2015-fig4",
      .source = "Kim 2015, figure 4",
      .shows = "the gain of trims and discards of page-aligned ranges over misaligned ones",
      .unsaid = {"by how much ranges were misaligned, how long they are, and whether writes were "
                 "misaligned as well"},
      .assumed =
          {"as kim2015-fig3; misaligned files begin and end in the middle of a page, and are "
           "written (with their neighbours' halves) and trimmed there; nothing joins two halves"},
      .seeds = 3,
      .scale = 16,
      .smallest = 64,
      .run = run_kim_fig4};
}

}  // namespace streamfs::lab::figures
