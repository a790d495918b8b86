#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"

namespace streamfs::lab::figures {

const std::vector<Figure>& all_figures() {
  static const std::vector<Figure> all = {
      vishwakarma2019_waf(), vishwakarma2019_streams(),
      kim2015_fig3(),        kim2015_fig4(),
      kim2015_fig5(),        yong2021_fig5(),
      yong2021_fig6(),       yong2021_f2fs(),
      yong2021_overhead(),   choi_fio(),
      choi_rocksdb(),        choi_rocksdb_settings(),
      lee_randwrite(),       lee_iozone(),
      lee_erase(),           lee_startup(),
      lee_selective(),
  };
  return all;
}

Result<const Figure*> find_figure(const std::string& name) {
  std::string known;
  for (const Figure& figure : all_figures()) {
    if (figure.name == name) return &figure;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", figure.name);
  }
  return Error{EINVAL, fmt::format("no figure '{}'; there are {}", name, known)};
}

Result<FigureRun> run_figure(const Figure& figure, FigureOptions options) {
  if (options.scale != 0 && figure.scale == 0) return Error{EINVAL, "has no device, so no scale"};
  if (options.seeds == 0) options.seeds = figure.seeds;
  if (options.scale == 0) options.scale = figure.scale;
  SFS_ASSIGN(FigureResult result, figure.run(options));
  return FigureRun{&figure, options, std::move(result)};
}

Measured over_seeds(std::span<const double> values) {
  if (values.empty()) return {.mean = 0, .least = 0, .most = 0, .seeds = 0};
  const auto [least, most] = std::ranges::minmax(values);
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return {.mean = std::clamp(mean, least, most),  // a rounded sum can lie outside
          .least = least,
          .most = most,
          .seeds = static_cast<uint32_t>(values.size())};
}

}  // namespace streamfs::lab::figures
