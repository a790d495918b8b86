#include "lab/figures/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"

namespace streamfs::lab::figures {

Result<void> in_parallel(unsigned jobs, size_t count,
                         const std::function<Result<void>(size_t)>& run) {
  std::vector<std::optional<Error>> errors(count);
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    while (!failed) {
      const size_t index = next++;
      if (index >= count) return;
      if (const Result<void> done = run(index); !done.ok()) {
        errors[index] = done.error();
        failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min<size_t>(jobs, count); ++i) others.emplace_back(work);
    work();
  }
  for (const std::optional<Error>& error : errors)
    if (error) return *error;
  return {};
}

}  // namespace streamfs::lab::figures
