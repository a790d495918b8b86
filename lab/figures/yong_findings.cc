#include "lab/figures/yong_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lab/figures/figure.h"
#include "lab/figures/report.h"

namespace streamfs::lab::figures {
namespace {

// Says whether all seeds agree.
std::string copies_less(const Measured& gap) {
  if (gap.least > 0) return "less";
  if (gap.least == 0 && gap.most == 0) return "no less";
  return gap.most < 0 ? "more" : "with some seeds less and with others no less";
}

std::string second_look(const char* when, const CopiesMore& more) {
  if (more.ngc.mean <= 0)
    return fmt::format("{}, vStream-SGC gains nothing over vStream-NGC.", when);
  return fmt::format(
      "{}, {:.0f} % of vStream-SGC's gain over vStream-NGC comes from looking the map up again, "
      "the "
      "rest from copies that stay with their pStream.",
      when, 100 * more.own.mean / more.ngc.mean);
}

std::string drift(const Measured& with, const Measured& without) {
  const double adds = with.mean - without.mean;
  const double spread = std::max(with.spread(), without.spread());
  return fmt::format("Drift changes the difference by {}, which is {} the spread over seeds ({}).",
                     rounded(adds), std::abs(adds) <= spread ? "within" : "beyond",
                     rounded(spread));
}

}  // namespace

std::string beside_ngc(const std::string& when, const Measured& gap) {
  std::string found = fmt::format(
      "{}, vStream-SGC copies {} than vStream-NGC: the difference is {} of Legacy's copies", when,
      copies_less(gap), rounded(gap.mean));
  if (gap.seeds > 1) found += fmt::format(" ({} to {})", rounded(gap.least), rounded(gap.most));
  return found + '.';
}

std::vector<std::string> fig6_findings(const CopiesMore& drifting, const CopiesMore& steady) {
  return {beside_ngc("With drift", drifting.ngc), beside_ngc("Without drift", steady.ngc),
          second_look("With drift", drifting), second_look("Without drift", steady),
          drift(drifting.ngc, steady.ngc)};
}

}  // namespace streamfs::lab::figures
