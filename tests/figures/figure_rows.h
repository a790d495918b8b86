// A figure run as small as it may be, and its rows by label. Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/result.h"
#include "emulator/figures/figure.h"

namespace streamfs::emulator::figures {

class FigureRows {
 public:
  explicit FigureRows(const std::string& name, uint32_t seeds = 1) {
    const Result<const Figure*> figure = find_figure(name);
    EXPECT_TRUE(figure.ok());
    Result<FigureRun> run = run_figure(**figure, {.seeds = seeds, .scale = (*figure)->smallest});
    EXPECT_TRUE(run.ok()) << run.error().message();
    if (run.ok()) result_ = std::move(run->result);
  }

  // −1, and a failure, where there is no such row.
  double operator[](const std::string& label) const {
    for (const FigureRow& row : result_.rows)
      if (row.label == label) return row.ours.mean;
    ADD_FAILURE() << "no row '" << label << "'";
    return -1;
  }
  const FigureResult& result() const { return result_; }

 private:
  FigureResult result_;
};

}  // namespace streamfs::emulator::figures
