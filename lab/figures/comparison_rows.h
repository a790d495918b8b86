// Compares placements on one workload, over seeds, as rows: WAF, copies per host byte and per
// second, simulated throughput. Rows are relative to the first placement where the source
// normalises to it.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/replay/replay.h"

namespace streamfs::lab::figures {

struct Contender {
  std::string label;      // the source's name for it
  std::string placement;  // ours
  uint32_t streams = 0;
  MakeSource source = {};  // the same writes with other tags; else the run's source
  bool full_size = false;  // the placement's sizes in bytes are not scaled with the device
};

// The runs of all contenders, with every seed.
class ContenderRuns {
 public:
  // Runs `common` with each contender's placement and each seed. Errors: those of the runs.
  static Result<ContenderRuns> run(const DeviceRun& common, std::vector<Contender> contenders,
                                   const FigureOptions& options);

  using Value = double (*)(const ReplayResult&);
  Measured measured(size_t contender, Value value) const;
  // Returns the values divided by the first contender's of the same seed.
  Measured relative(size_t contender, Value value) const;
  // Returns (value of `more` − value of `less`) ÷ the first contender's, by seed.
  Measured gap(const std::string& more, const std::string& less, Value value) const;
  const std::vector<Contender>& contenders() const { return contenders_; }
  size_t index_of(const std::string& label) const;  // requires: a contender has the label

 private:
  std::vector<Contender> contenders_;
  std::vector<std::vector<ReplayResult>> results_;  // by contender, then seed
};

// Returns a ratio as a percentage: 1.5 is 50 % more; with sign −1, .5 is 50 % less.
Measured percent_change(const Measured& ratio, double sign = 1);

double waf_of(const ReplayResult& result);
double copies_a_byte(const ReplayResult& result);  // copied ÷ written by the host
// The seconds are the saturating host's.
double copied_mb_a_second(const ReplayResult& result);
double mb_a_second(const ReplayResult& result);     // host bytes; 0 without times
double share_of_bound(const ReplayResult& result);  // mb_a_second ÷ its work-conserving bound

}  // namespace streamfs::lab::figures
