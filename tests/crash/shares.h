// Shares work among processes, so that an assertion that fails ends only one share.
// Thread safety: none; the caller has one thread.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace streamfs::shares {

// The result of a share: counts, and hashes of states.
template <typename Tally>
struct Share {
  Tally tally{};
  std::vector<uint64_t> states;
};

struct Child {
  pid_t pid;
  std::FILE* said;
};

template <typename Tally>
[[noreturn]] void be_child(std::FILE* out, const Share<Tally>& share) {
  std::fflush(stdout);
  const std::vector<uint64_t>& states = share.states;
  const bool told =
      std::fwrite(&share.tally, sizeof(Tally), 1, out) == 1 &&
      std::fwrite(states.data(), sizeof(uint64_t), states.size(), out) == states.size() &&
      std::fclose(out) == 0;
  _exit(told ? 0 : 1);
}

// Starts a process that works and tells its share.
template <typename Work>
std::optional<Child> start(const Work& work, size_t job) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return std::nullopt;
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) be_child(fdopen(ends[1], "w"), work(job));
  close(ends[1]);
  return Child{pid, fdopen(ends[0], "r")};
}

// Calls work(job) in each of `jobs` processes, and take(share) here with each result. Returns false
// if a process died.
template <typename Work, typename Take>
bool run(size_t jobs, const Work& work, const Take& take) {
  using Result = decltype(work(size_t{0}));
  static_assert(std::is_trivially_copyable_v<decltype(Result::tally)>);
  std::vector<Child> children;
  for (size_t job = 0; job < jobs; ++job)
    if (const auto child = start(work, job)) children.push_back(*child);
  bool lived = children.size() == jobs;
  for (const Child& child : children) {
    Result share;
    bool told = std::fread(&share.tally, sizeof(share.tally), 1, child.said) == 1;
    for (uint64_t state = 0; std::fread(&state, sizeof(state), 1, child.said) == 1;)
      share.states.push_back(state);
    std::fclose(child.said);
    int status = 0;
    told = waitpid(child.pid, &status, 0) == child.pid && status == 0 && told;
    take(share);
    lived = lived && told;
  }
  return lived;
}

}  // namespace streamfs::shares
