// fsck.streamfs --meta META DATA: replays the journal, checks META (meta/check.h) and repairs it.
// Exit bits of fsck(8), added up: 1 something was repaired, 4 problems are left, 8 could not check,
// 16 wrong use, 32 interrupted. Options are those of e2fsck, where it has such an option.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/exit_codes.h"
#include "base/human_bytes.h"
#include "base/plain_help.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/intent_check.h"
#include "fuse-fs/pair/pair.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/configured.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/output.h"
#include "pmem/region.h"

namespace {

using namespace streamfs;         // NOLINT(google-build-using-namespace): a program's own file
using namespace streamfs::tools;  // NOLINT(google-build-using-namespace)

constexpr const char* kProgram = "fsck.streamfs";
enum FsckCode : uint8_t {
  kSound = 0,
  kRepaired = 1,
  kProblemsLeft = 4,
  kNotChecked = 8,
  kWrongUse = 16,
  kCancelled = 32,
};

struct Wishes {
  std::string meta, mirror, data;
  bool look_only = false;    // -n: nothing on the devices changes
  bool repair = false;       // -y
  bool restore = false;      // META from the log on DATA
  bool without_log = false;  // META as it is, although the machine went down while it was in use
  bool degraded = false;     // one copy of a META that is kept twice
  bool resync = false;       // make the mirror a copy, whatever it holds
  bool force = false;        // -f: check a filesystem that was unmounted cleanly
  bool automatic = false;    // -a, -p: at boot; skip a clean filesystem
  bool as_json = false;
  int progress = -1;  // -C: 0 a bar on the terminal, else lines on this descriptor
  bool repairs() const { return repair || automatic; }
};

// SIGINT and SIGTERM set it. Repairs are not interrupted.
std::atomic<bool> cancelled{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void declare(CLI::App& app, Wishes& wishes) {
  app.add_option(
      "--meta", wishes.meta,
      "Use this metadata device (default: the META of DATA in /etc/fstab or /etc/streamfs/*.conf)");
  auto* mirror = app.add_option("--mirror", wishes.mirror, "Use this second copy of META");
  app.add_option("DATA", wishes.data, "The data device")->required();
  auto* look = app.add_flag("-n", wishes.look_only,
                            "Check only: repair nothing and do not replay the journal");
  auto* yes =
      app.add_flag("-y", wishes.repair, "Repair all damage that can be repaired")->excludes(look);
  app.add_flag("-a,-p", wishes.automatic, "Repair as -y, but skip a clean filesystem")
      ->excludes(look)
      ->excludes(yes);
  app.add_flag("--restore", wishes.restore,
               "Rebuild a META that is lost or old from the log on DATA, then check it")
      ->excludes(look);
  app.add_flag(
      "--without-log", wishes.without_log,
      "Check META's own content if the machine went down and the log on DATA cannot be read");
  app.add_flag("--resync", wishes.resync,
               "Make the device of --mirror a copy of META, whatever it holds; also a filesystem's "
               "first copy")
      ->needs(mirror)
      ->excludes(look);
  app.add_flag("--degraded", wishes.degraded, "Use one copy of a META that is kept twice")
      ->excludes(mirror);
  app.add_flag("-f,--force", wishes.force, "Check a clean filesystem, too");
  app.add_flag("--json", wishes.as_json, "Print JSON");
  app.add_option("-C", wishes.progress,
                 "Show progress: 0 draws a bar on the terminal, another number prints lines \"pass "
                 "done total DATA\" to that file descriptor")
      ->check(at_least(0))
      ->type_name("FD");
}

int explain_refusal(const Error& error) {
  if (error.code == ECANCELED) {
    return fail(kProgram, Failure{kCancelled, "interrupted before anything was repaired"});
  }
  const Failure failure = explain(error);
  const bool damaged = error.context.find("damaged") != std::string::npos;
  fail(kProgram, Failure{kNotChecked, failure.sentence});
  return damaged ? kProblemsLeft : kNotChecked;
}

// Shows progress in e2fsck's form, so that fsck(8) and installers can read it.
void show_progress(const Wishes& wishes, int pass, uint64_t done, uint64_t total) {
  if (wishes.progress > 0) {
    const std::string line = fmt::format("{} {} {} {}\n", pass, done, total, wishes.data);
    if (::write(wishes.progress, line.data(), line.size()) < 0) return;  // nobody listens
    return;
  }
  constexpr int kWidth = 50, kFirstPass = 80;  // %
  const uint64_t share = pass == 1 ? kFirstPass : 100 - kFirstPass;
  const uint64_t percent =
      (pass == 1 ? 0 : kFirstPass) + done * share / std::max<uint64_t>(total, 1);
  const auto filled = static_cast<size_t>(percent * kWidth / 100);
  fmt::print("\r{}: |{:<{}}| {:3} %{}", wishes.data, std::string(filled, '='), kWidth, percent,
             percent == 100 ? "\n" : "");
  std::fflush(stdout);
}

meta::CheckOptions check_options(const Wishes& wishes) {
  meta::CheckOptions options;
  options.repair = wishes.repairs();
  options.cancelled = &cancelled;
  if (wishes.progress > 0 ||
      (wishes.progress == 0 && !wishes.as_json && ::isatty(STDOUT_FILENO) == 1)) {
    options.progress = [&wishes](int pass, uint64_t done, uint64_t total) {
      show_progress(wishes, pass, done, total);
    };
  }
  return options;
}

int code_of(const meta::CheckReport& report) {
  int code = kSound;
  for (const meta::CheckReport::Problem& problem : report.problems)
    code |= problem.repaired ? kRepaired : kProblemsLeft;
  return code;
}

std::string_view verdict(const Wishes& wishes, int code) {
  if (code == kSound) return "sound";
  if (code == kRepaired) return "repaired";
  return wishes.repairs() ? "problems left that cannot be repaired" : "problems left; run with -y";
}

nlohmann::json intent_json(const pair::IntentReport& intent) {
  return {{"entries", intent.entries},
          {"bytes", intent.blocks * kBlockSize},
          {"files", intent.files},
          {"written_bytes", intent.written_blocks * kBlockSize},
          {"lost_bytes", intent.lost_blocks * kBlockSize}};
}

void print_intent_log(const Wishes& wishes, const pair::IntentReport& intent) {
  if (intent.entries == 0 && intent.written_blocks == 0) return;
  fmt::print("{}: intent log: {} entries with {} of {} files; {} written to DATA{}\n", wishes.data,
             intent.entries, human_bytes(intent.blocks * kBlockSize), intent.files,
             human_bytes(intent.written_blocks * kBlockSize),
             wishes.repairs() ? "" : " (the next mount or -y writes them)");
}

nlohmann::json report_json(const meta::CheckReport& report, int code) {
  nlohmann::json problems = nlohmann::json::array();
  for (const meta::CheckReport::Problem& problem : report.problems)
    problems.push_back({{"what", problem.text}, {"repaired", problem.repaired}});
  return {{"state", code == kSound      ? "sound"
                    : code == kRepaired ? "repaired"
                                        : "problems left"},
          {"problems", std::move(problems)},
          {"files", report.files},
          {"directories", report.directories},
          {"others", report.others},
          {"orphans", report.orphans},
          {"used_bytes", report.blocks_in_use * kBlockSize}};
}

void print_report(const Wishes& wishes, const meta::CheckReport& report, int code) {
  for (const meta::CheckReport::Problem& problem : report.problems) {
    fmt::print("{}{}\n", problem.text, problem.repaired ? " (repaired)" : "");
  }
  fmt::print("{}: metadata {}; {} files, {} directories, {} others, {} orphans, {} in use\n",
             wishes.data, verdict(wishes, code), report.files, report.directories, report.others,
             report.orphans, human_bytes(report.blocks_in_use * kBlockSize));
}

// Marks a filesystem clean that was checked and is right, so that the next mount need not count its
// inodes.
Result<void> mark_clean(pmem::Region& region, const meta::CheckReport& report) {
  SFS_ASSIGN(meta::Superblock super, meta::load_superblock(region, true));
  if (super.clean != 0) return {};
  super.clean = 1;
  super.clean_used_inodes = report.inodes;
  return meta::store_superblock(region, super);
}

// With -n META is mapped privately: the journal is replayed in memory only.
Result<int> examine(const Wishes& wishes) {
  pair::PairOptions options;
  options.read_only = wishes.look_only;
  options.restore_meta = wishes.restore;
  options.meta_as_it_is = wishes.without_log;
  options.mirror_path = wishes.mirror;
  options.degraded = wishes.degraded;
  options.make_mirror = wishes.resync;
  SFS_ASSIGN(pair::OpenPair pair, pair::open_pair(wishes.meta, wishes.data, options));
  // After changes to one copy alone, the other copy must not count as its equal.
  if (!wishes.look_only && !pair.degraded.empty()) SFS_TRY(pair::attach(pair));
  if (wishes.automatic && !wishes.force && pair.super.clean != 0) {
    if (wishes.as_json) print_json({{"state", "clean"}});
    if (!wishes.as_json) fmt::print("{}: clean\n", wishes.data);
    return int{kSound};
  }
  SFS_ASSIGN(const meta::Geometry geometry, meta::Geometry::from(pair.super));
  SFS_ASSIGN(const auto replayed, meta::recover_journal(*pair.region, geometry));
  if (replayed.records_replayed != 0 && !wishes.as_json) {
    fmt::print("{}: {} records of the journal replayed\n", wishes.data, replayed.records_replayed);
  }
  SFS_ASSIGN(meta::CheckReport report,
             meta::check(*pair.region, pair.super, check_options(wishes)));
  // Until META itself is right, it is not known which blocks are a file's.
  const bool settles = wishes.repairs() && (code_of(report) & kProblemsLeft) == 0;
  const auto how = wishes.automatic ? pair::IntentRepair::kWithoutLoss : pair::IntentRepair::kAll;
  SFS_ASSIGN(const pair::IntentReport intent,
             pair::check_intent_log(pair, settles ? how : pair::IntentRepair::kNone));
  const bool whole = pair.region->lost() == 0;
  report.problems.insert(report.problems.end(), intent.problems.begin(), intent.problems.end());
  const int code = code_of(report);
  if (whole) SFS_TRY(pair.region->sync());  // before a page that says "clean" may be written back
  if (!wishes.look_only && (code & kProblemsLeft) == 0) SFS_TRY(mark_clean(*pair.region, report));
  if (whole) SFS_TRY(pair.region->sync());
  const uint64_t mended = pair.region->counters().mended;
  if (wishes.as_json) {
    nlohmann::json out = report_json(report, code);
    out["records_replayed"] = replayed.records_replayed;
    out["mended"] = mended;
    out["intent_log"] = intent_json(intent);
    print_json(out);
  } else {
    print_intent_log(wishes, intent);
    print_report(wishes, report, code);
  }
  if (mended == 0) return int{code};
  if (!wishes.as_json)
    fmt::print("{}: {} objects mended from the other copy\n", wishes.data, mended);
  return wishes.look_only ? code : code | kRepaired;
}

void give_up_when_told() {
  struct sigaction action{};
  action.sa_handler = [](int) { cancelled.store(true); };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Checks the metadata of an unmounted streamfs. Reads no file data but the intent log's: each "
      "read of a mount compares data with its checksums.",
      kProgram);
  Wishes wishes;
  prepare(app);
  app.footer(
      "Exit codes, added up as fsck(8) has them: 0 sound, 1 repaired, 4 problems left, 8 could not "
      "check, 16 wrong use, 32 interrupted. What has lost its name goes to /lost+found, as "
      "#INODE.");
  declare(app, wishes);
  if (const auto code = parse(app, argc, argv)) return *code == 0 ? kSound : kWrongUse;
  log_to_stderr(Talk::kWarnings);
  if (wishes.meta.empty()) {
    const auto found = configured_meta(wishes.data);
    if (!found) {
      fail(kProgram, Failure{kWrongUse,
                             "--meta is missing, and neither /etc/fstab nor "
                             "/etc/streamfs says where the metadata of " +
                                 wishes.data + " is"});
      return kWrongUse;
    }
    wishes.meta = found->meta;
    if (wishes.mirror.empty() && !wishes.degraded) wishes.mirror = found->mirror;
  }
  wishes.meta = absolute_path(wishes.meta);
  if (!wishes.mirror.empty()) wishes.mirror = absolute_path(wishes.mirror);
  wishes.data = absolute_data(wishes.data);
  give_up_when_told();
  const Result<int> code = examine(wishes);
  return code ? *code : explain_refusal(code.error());
}

}  // namespace

int main(int argc, char** argv) {
  const int code = guarded(kProgram, [=] { return run(argc, argv); });
  return code == exit_code::kIo ? kNotChecked : code;  // something was thrown
}
