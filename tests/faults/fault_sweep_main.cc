// The fault sweep: a workload with snapshots of META, in which one flush or one write of DATA
// fails, at every position in turn. Each fault is followed by a minute of background work and by
// each ending: unmount, kill, or power cut, with META or without it, and with either snapshot area
// destroyed. Afterwards the filesystem mounts, is sound, and has every file that was promised by
// fsync().
//
// usage: fault_sweep [--flushes N] [--writes N] [--draw COUNT] [--seed S] [--jobs N] [--persistent]
// --draw: so many positions of each kind, drawn from the first N; 0: all of them.
// Prints counts, and a line for each run that failed. Exit code 1: a run failed, or a fault that
// was armed did not happen; 2: wrong option.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/types.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/snapshot.h"
#include "fuse-fs/pair/log_blocks.h"
#include "fuse-fs/pair/pair.h"
#include "pmem/region.h"
#include "tests/faults/sweep_workload.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

using blockdev::Faults;

// ---- Faults and endings

struct Fault {
  std::string_view name;
  bool is_flush;
  Faults how;  // but for the position
};
const std::array kFaults = {
    Fault{"one flush", true, {.failures = 1}},
    Fault{"one flush, and unflushed writes are dropped",
          true,
          {.failures = 1, .lose_on_failed_flush = true}},
    Fault{"this flush and all later ones", true, {}},
    Fault{"one write", false, {.failures = 1}},
    Fault{"one write, half of it arrived", false, {.failures = 1, .tear_failing_writes = true}},
    Fault{"one write, which arrived", false, {.failures = 1, .failing_writes_arrive = true}},
    Fault{"this write and all later ones", false, {}},
};

// Overwrites an area, if the other one has a snapshot. A fault in a snapshot leaves one of them,
// and its loss would be a second fault.
bool destroy_area(Rig& rig, uint64_t generation) {
  const meta::DataLabel label = pair::read_label(rig.ram()).value();
  pair::LogBlocks blocks(rig.ram());
  const meta::SnapshotHeaders headers = meta::read_snapshot_headers(label, blocks).value();
  if (headers.older.generation == 0) return false;
  for (const meta::BlockRange& range : meta::snapshot_area(label, generation))
    for (uint64_t i = 0; i < range.count; ++i)
      std::fill_n(rig.ram().block(range.first + i), kBlockSize, std::byte{0x5a});
  return true;
}

struct Ending {
  std::string_view name;
  std::function<bool(Rig&)> run;  // false: it does not apply here
};

bool cut_without_area(Rig& rig, uint64_t generation) {
  bool applies = true;
  rig.power_cut_losing_meta(generation + 7, [&] { applies = destroy_area(rig, generation); });
  return applies;
}

std::vector<Ending> endings(bool is_persistent) {
  std::vector<Ending> out = {
      {"unmount",
       [](Rig& rig) {
         (void)rig.fs().unmount();
         rig.kill();
         return true;
       }},
      {"unmount, META lost",
       [](Rig& rig) {
         (void)rig.fs().unmount();
         rig.kill_losing_meta();
         return true;
       }},
      {"kill",
       [](Rig& rig) {
         rig.kill();
         return true;
       }},
      {"power cut, META lost",
       [](Rig& rig) {
         rig.power_cut_losing_meta(3);
         return true;
       }},
      {"power cut, META and snapshot area 0 lost",
       [](Rig& rig) { return cut_without_area(rig, 0); }},
      {"power cut, META and snapshot area 1 lost",
       [](Rig& rig) { return cut_without_area(rig, 1); }},
  };
  if (is_persistent)
    out.push_back({"power cut", [](Rig& rig) {
                     rig.power_cut(5);
                     return true;
                   }});
  return out;
}

// ---- Counts, shared by all processes

struct Counts {
  std::atomic<uint64_t> faults{0}, missed{0}, runs{0}, skipped{0}, unmountable{0}, unsound{0};
  std::atomic<uint64_t> files{0}, lost{0};
};

Counts& shared_counts() {
  void* const memory =
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  SFS_ASSERT(memory != MAP_FAILED);
  return *new (memory) Counts;
}

void complain(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}

// Runs it in a child; whether that ended by itself.
bool in_child(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  SFS_ASSERT(child >= 0);
  if (child == 0) {
    work();
    std::fflush(nullptr);
    ::_exit(0);
  }
  int status = 0;
  SFS_ASSERT(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// ---- The sweep

class Sweep {
 public:
  Sweep(Counts& counts, bool is_persistent) : counts_(counts), endings_(endings(is_persistent)) {
    Rig::Options options =
        Rig::with_log(is_persistent ? pmem::MetaClass::kPersistent : pmem::MetaClass::kSynced);
    options.blocks = 2048;
    options.forgetful_meta = is_persistent;
    rig_ = std::make_unique<Rig>(options);
    workload_ = std::make_unique<SweepWorkload>(*rig_);
    writes_of_mkfs_ = rig_->device().writes();
    flushes_of_mkfs_ = rig_->device().flushes();
  }

  // Positions count from 1, the first flush or write after mkfs.
  void run(const std::set<uint64_t>& flushes, const std::set<uint64_t>& writes) {
    auto flush = flushes.begin();
    auto write = writes.begin();
    while (flush != flushes.end() || write != writes.end()) {
      for (; flush != flushes.end() && *flush <= flushes_done() + kAhead; ++flush)
        fail_at(*flush - flushes_done() - 1, true, *flush);
      for (; write != writes.end() && *write <= writes_done() + kAhead; ++write)
        fail_at(*write - writes_done() - 1, false, *write);
      workload_->step();
    }
  }

 private:
  static constexpr uint64_t kAhead = 24;  // more than a step without a snapshot takes

  uint64_t flushes_done() const { return rig_->device().flushes() - flushes_of_mkfs_; }
  uint64_t writes_done() const { return rig_->device().writes() - writes_of_mkfs_; }

  void fail_at(uint64_t after, bool is_flush, uint64_t position) {
    for (const Fault& fault : kFaults) {
      if (fault.is_flush != is_flush) continue;
      const std::string what =
          fmt::format("{} {} ({})", is_flush ? "flush" : "write", position, fault.name);
      if (in_child([&] { run_fault(fault, after, what); })) continue;
      ++counts_.unsound;
      complain(what + ": the process that met the fault died");
    }
  }

  void run_fault(const Fault& fault, uint64_t after, const std::string& what) {
    Faults faults = fault.how;
    (fault.is_flush ? faults.fail_flushes_after : faults.fail_writes_after) = after;
    rig_->device().set_faults(faults);
    for (uint64_t i = 0; rig_->device().failed() == 0 && i < 2 * kAhead; ++i) workload_->step();
    if (rig_->device().failed() == 0) {
      ++counts_.missed;
      return complain(what + ": did not happen");
    }
    ++counts_.faults;
    for (int i = 0; i < 3; ++i) workload_->step();
    workload_->let_time_pass();
    for (const Ending& ending : endings_) {
      const std::string where = what + ", " + std::string(ending.name);
      if (in_child([&] { end(ending, where); })) continue;
      ++counts_.runs;
      ++counts_.unmountable;
      complain(where + ": did not mount");
    }
  }

  void end(const Ending& ending, const std::string& where) {
    rig_->device().set_faults({});
    if (!ending.run(*rig_)) {
      ++counts_.skipped;
      return;
    }
    ++counts_.runs;
    const meta::CheckReport report = rig_->check();
    if (!report.sound()) {
      ++counts_.unsound;
      complain(where + ": " + report.problems.front().text);
    }
    const SweepWorkload::Found found = workload_->check();
    counts_.files += found.files;
    counts_.lost += found.lost.size();
    for (const std::string& each : found.lost) complain(where + ": " + each);
    write_again(where);
  }

  // The mounted filesystem also works: the log begins, and an fsync succeeds.
  void write_again(const std::string& where) {
    if (workload_->writes()) return;
    ++counts_.unsound;
    complain(where + ": nothing can be written after the next mount");
  }

  Counts& counts_;
  const std::vector<Ending> endings_;
  std::unique_ptr<Rig> rig_;
  std::unique_ptr<SweepWorkload> workload_;
  uint64_t writes_of_mkfs_ = 0, flushes_of_mkfs_ = 0;
};

// ---- The program

struct Options {
  uint64_t flushes = 1000, writes = 1000, draw = 0, seed = 1, jobs = 1;
  bool is_persistent = false;
};

std::vector<uint64_t> positions(uint64_t count, uint64_t draw, uint64_t seed) {
  std::vector<uint64_t> all(count);
  std::iota(all.begin(), all.end(), uint64_t{1});
  if (draw == 0 || draw >= count) return all;
  std::mt19937_64 random(seed);
  std::ranges::shuffle(all, random);
  all.resize(draw);
  return all;
}

std::set<uint64_t> part_of(const std::vector<uint64_t>& all, uint64_t part, uint64_t parts) {
  std::set<uint64_t> out;
  for (uint64_t i = part; i < all.size(); i += parts) out.insert(all[i]);
  return out;
}

void run_jobs(const Options& options, Counts& counts) {
  const auto flushes = positions(options.flushes, options.draw, options.seed);
  const auto writes = positions(options.writes, options.draw, options.seed + 1);
  std::vector<pid_t> jobs;
  std::fflush(nullptr);
  for (uint64_t part = 0; part < options.jobs; ++part) {
    const pid_t job = ::fork();
    SFS_ASSERT(job >= 0);
    if (job == 0) {
      Sweep(counts, options.is_persistent)
          .run(part_of(flushes, part, options.jobs), part_of(writes, part, options.jobs));
      ::_exit(0);
    }
    jobs.push_back(job);
  }
  for (const pid_t job : jobs) {
    int status = 0;
    SFS_ASSERT(::waitpid(job, &status, 0) == job);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++counts.unsound;
  }
}

int report(const Counts& counts) {
  fmt::print("faults: {}, not reached: {}\n", counts.faults.load(), counts.missed.load());
  fmt::print("runs: {}, unmountable: {}, unsound: {}, of one area only, so not run: {}\n",
             counts.runs.load(), counts.unmountable.load(), counts.unsound.load(),
             counts.skipped.load());
  fmt::print("promised files checked: {}, lost: {}\n", counts.files.load(), counts.lost.load());
  const bool good = counts.missed == 0 && counts.unmountable == 0 && counts.unsound == 0 &&
                    counts.lost == 0 && counts.runs > 0;
  return good ? 0 : 1;
}

int run_main(int argc, char** argv) {
  CLI::App app{"Fail every flush and every write of a workload in turn, and look what is left"};
  Options options;
  app.add_option("--flushes", options.flushes, "flush positions (default 1000)");
  app.add_option("--writes", options.writes, "write positions (default 1000)");
  app.add_option("--draw", options.draw, "positions drawn of each kind; 0: all (default)");
  app.add_option("--seed", options.seed, "of the drawing (default 1)");
  app.add_option("--jobs", options.jobs, "processes (default 1)")->check(CLI::Range(1, 64));
  app.add_flag("--persistent", options.is_persistent, "META is persistent memory, not synced");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  spdlog::set_level(spdlog::level::off);
  Counts& counts = shared_counts();
  run_jobs(options, counts);
  return report(counts);
}

}  // namespace
}  // namespace streamfs::data

int main(int argc, char** argv) {
  return streamfs::data::run_main(argc, argv);
}
