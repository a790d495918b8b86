// Runs independent tasks on up to `jobs` threads, the caller's included.
// Thread safety: the functions may be called from any thread. They call `run` in several threads at
// once, and have ended these threads when they return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/figures/figure.h"

namespace streamfs::lab::figures {

// Calls run(0) … run(count − 1), each once. After an error no further call begins. Returns the
// error of the lowest index that has one.
Result<void> in_parallel(unsigned jobs, size_t count,
                         const std::function<Result<void>(size_t)>& run);

// Calls run(setup, seed) for every setup, 0 to setups − 1, with every seed, from 1. Returns the
// results by setup and then by seed.
template <typename T, typename Run>
Result<std::vector<std::vector<T>>> over_setups(const FigureOptions& options, size_t setups,
                                                const Run& run) {
  const size_t seeds = options.seeds;
  std::vector<std::optional<T>> found(setups * seeds);
  SFS_TRY(in_parallel(options.jobs, found.size(), [&](size_t i) -> Result<void> {
    SFS_ASSIGN(found[i], run(i / seeds, i % seeds + 1));
    return {};
  }));
  std::vector<std::vector<T>> all(setups);
  for (size_t i = 0; i < found.size(); ++i)
    all[i / seeds].push_back(
        *std::move(found[i]));  // NOLINT(bugprone-unchecked-optional-access): all ran
  return all;
}

}  // namespace streamfs::lab::figures
