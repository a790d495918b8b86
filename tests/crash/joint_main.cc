// Cuts META and DATA's volatile cache together, in sequences of operations on a whole filesystem
// with an intent log (the bounded black-box method of sequences_main.cc). Every sequence of one and
// of two operations runs from each start; longer ones are drawn at random. A sequence is cut only
// in its last operation: earlier cuts are another sequence's.
//
// Each state is mounted with its META, and once more with a META that is rebuilt from the log on
// DATA. In a sample of the states the recovery itself is cut. If META is kept twice, a cut chooses
// the unfenced stores that survive for each copy separately. Each such state is mounted with both
// copies and with each copy alone.
//
// usage: joint [--length N] [--draw COUNT] [--twice COUNT] [--seed S] [--jobs N] [--only WHICH]
//              [--mirror]
// Prints a line for each length and the number of distinct states. Exit code 1: a state was wrong,
// and is shown with the options that repeat its sequence; 2: wrong option.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>

#include "tests/crash/joint_operations.h"
#include "tests/crash/joint_prover.h"
#include "tests/crash/joint_rig.h"
#include "tests/crash/shares.h"

namespace streamfs::joint {
namespace {

struct Work {
  size_t length;
  uint64_t draw;  // 0: all sequences of this length
  uint64_t seed;
  size_t jobs;
  Kept kept;
};

using Share = shares::Share<Tally>;

// Proves every jobs-th sequence.
Share prove_share(const Work& work, size_t job) {
  Prover prover(work.kept, work.seed);
  Share share;
  std::mt19937_64 random(work.seed);
  const uint64_t all = sequences(work.length);
  const uint64_t count = work.draw == 0 ? all : work.draw;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t number = work.draw == 0 ? i : random() % all;
    if (i % work.jobs != job) continue;
    if (const auto sequence = sequence_of(number, work.length))
      prover.prove(*sequence, share.tally);
  }
  share.states.assign(prover.states().begin(), prover.states().end());
  return share;
}

// Returns whether all processes lived and no state was wrong.
bool prove(const Work& work, States& states) {
  Tally sum;
  uint64_t kept = 0, lost = 0;
  const bool lived = shares::run(
      work.jobs, [&](size_t job) { return prove_share(work, job); },
      [&](const Share& share) {
        sum.add(share.tally);
        for (const uint64_t state : share.states) {
          if (states.insert(state).second) ++(is_lost(state) ? lost : kept);
        }
      });
  fmt::print(
      "length {}{}: {} sequences{}, {} new states with META, {} with META lost, {} more in "
      "recovery, {} wrong{}\n",
      work.length, work.kept == Kept::kTwice ? ", META kept twice" : "", sum.sequences,
      work.draw == 0 ? "" : fmt::format(" of {} drawn", work.draw), kept, lost, sum.in_recovery,
      sum.wrong, lived ? "" : "; a process died");
  return lived && sum.wrong == 0;
}

struct Options {
  size_t length = 3, jobs = 2;
  uint64_t draw = 500, twice = 100, seed = 1;
  std::string only;
  bool mirror = false;
};

int prove_only(const Options& options) {
  const auto sequence = parse_sequence(options.only);
  if (!sequence) {
    fmt::print(stderr, "joint: {} is no start and operations of the list\n", options.only);
    return 2;
  }
  Prover prover(options.mirror ? Kept::kTwice : Kept::kOnce, options.seed);
  Tally tally;
  prover.prove(*sequence, tally);
  fmt::print("{}: {} states, {} more in recovery, {} wrong\n", sequence->text(),
             prover.states().size(), tally.in_recovery, tally.wrong);
  return tally.wrong == 0 ? 0 : 1;
}

int prove_all(const Options& options) {
  const auto& [length, jobs, draw, twice, seed, only, mirror] = options;
  States states;
  bool right = true;
  for (size_t i = 1; i <= length; ++i) {
    if (i > 2 && draw == 0) break;
    right = prove({i, i > 2 ? draw : 0, seed, jobs, Kept::kOnce}, states) && right;
  }
  for (size_t i = 1; i <= std::min<size_t>(length, 2); ++i) {
    if (twice == 0) break;
    right = prove({i, i > 1 ? twice : 0, seed, jobs, Kept::kTwice}, states) && right;
  }
  fmt::print("{} distinct states, {}\n", states.size(), right ? "none wrong" : "some wrong");
  return right ? 0 : 1;
}

}  // namespace
}  // namespace streamfs::joint

int main(int argc, char** argv) {
  streamfs::joint::Options options;
  CLI::App app("Cut META and DATA together in sequences of operations.");
  app.add_option("--length", options.length,
                 "Run sequences of up to N operations, 1 to 5 (default 3)")
      ->check(CLI::Range(1, 5));
  app.add_option("--draw", options.draw,
                 "Draw N sequences of each length above 2; 0: run none of them (default 500)");
  app.add_option("--twice", options.twice,
                 "Draw N sequences of 2 operations with META kept twice; 0: keep META once only "
                 "(default 100)");
  app.add_option("--seed", options.seed, "Seed the random choices (default 1)");
  app.add_option("--jobs", options.jobs, "Run N processes, 1 to 64 (default 2)")
      ->check(CLI::Range(1, 64));
  app.add_option("--only", options.only,
                 "Run one sequence: the numbers of its start and operations, as in 0.3.12");
  app.add_flag("--mirror", options.mirror, "Keep META twice; only with --only");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::off);
  return options.only.empty() ? streamfs::joint::prove_all(options)
                              : streamfs::joint::prove_only(options);
}
