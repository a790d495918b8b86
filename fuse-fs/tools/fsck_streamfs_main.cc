// fsck.streamfs --meta META DATA: replays the journal, checks what must hold, repairs what it may.
// Exit bits of fsck(8): 0 sound, 1 repaired, 4 problems left, 8 could not check, 16 wrong use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/attachments.h"
#include "fuse-fs/data/pair.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/launch.h"

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
};

struct Wishes {
  std::string meta, mirror, data;
  bool look_only = false;  // -n: nothing on the devices changes
  bool repair = false;     // -y, -a, -p
  bool restore = false;    // META from the log on DATA
  bool degraded = false;   // one copy of a META that is kept twice
  bool resync = false;     // make the mirror a copy, whatever it holds
  bool force = false;      // -f: although it was unmounted cleanly
  bool automatic = false;  // -a, -p: at boot; a clean one is not looked at
};

void declare(CLI::App& app, Wishes& wishes) {
  app.add_option("--meta", wishes.meta, "The metadata device")->required();
  auto* mirror = app.add_option("--mirror", wishes.mirror, "META a second time");
  app.add_option("DATA", wishes.data, "The data device")->required();
  auto* look = app.add_flag("-n", wishes.look_only, "Change nothing, not even replay the journal");
  app.add_flag("-y", wishes.repair, "Repair what can be repaired")->excludes(look);
  app.add_flag("-a,-p", wishes.automatic, "Repair, and skip a clean filesystem")->excludes(look);
  app.add_flag("--restore", wishes.restore,
               "Rebuild META, lost or an older copy, from the log on DATA; then check")
      ->excludes(look);
  app.add_flag(
         "--resync", wishes.resync,
         "Make what --mirror names a copy of META, whatever it holds; also the first such copy "
         "of a filesystem that has had none")
      ->needs(mirror)
      ->excludes(look);
  app.add_flag("--degraded", wishes.degraded, "Go on with one copy of a META that is kept twice")
      ->excludes(mirror);
  app.add_flag("-f,--force", wishes.force, "Check a clean filesystem too");
}

int explain_refusal(const Error& error) {
  const Failure failure = explain(error);
  const bool damaged = error.context.find("damaged") != std::string::npos;
  fail(kProgram, Failure{kNotChecked, failure.sentence});
  return damaged ? kProblemsLeft : kNotChecked;
}

void print_report(const Wishes& wishes, const meta::CheckReport& report) {
  for (const meta::CheckReport::Problem& problem : report.problems) {
    fmt::print("{}{}\n", problem.text, problem.repaired ? " (repaired)" : "");
  }
  fmt::print("{}: metadata {}; {} files, {} directories, {} others, {} orphans, {} in use\n",
             wishes.data,
             report.sound()          ? "sound"
             : report.all_repaired() ? "repaired"
                                     : "problems left; run with -y",
             report.files, report.directories, report.others, report.orphans,
             human_bytes(report.blocks_in_use * kBlockSize));
}

// With -n META is mapped privately: the journal is replayed in memory only.
Result<int> examine(const Wishes& wishes) {
  data::MountOptions options;
  options.read_only = wishes.look_only;
  options.restore_meta = wishes.restore;
  options.mirror_path = wishes.mirror;
  options.degraded = wishes.degraded;
  options.make_mirror = wishes.resync;
  SFS_ASSIGN(data::OpenPair pair, data::open_pair(wishes.meta, wishes.data, options));
  // What it changes alone, the other copy shall not be taken for its equal.
  if (!wishes.look_only && !pair.degraded.empty()) SFS_TRY(data::attach(pair));
  if (wishes.automatic && !wishes.force && pair.super.clean != 0) {
    fmt::print("{}: clean\n", wishes.data);
    return int{kSound};
  }
  SFS_ASSIGN(const meta::Geometry geometry, meta::Geometry::from(pair.super));
  SFS_ASSIGN(const auto replayed, meta::recover_journal(*pair.region, geometry));
  if (replayed.records_replayed != 0) {
    fmt::print("{}: {} records of the journal replayed\n", wishes.data, replayed.records_replayed);
  }
  meta::CheckOptions check;
  check.repair = wishes.repair || wishes.automatic;
  SFS_ASSIGN(const meta::CheckReport report, meta::check(*pair.region, pair.super, check));
  SFS_TRY(pair.region->sync());
  print_report(wishes, report);
  const uint64_t mended = pair.region->counters().mended;
  if (mended > 0) fmt::print("{}: {} objects mended from the other copy\n", wishes.data, mended);
  if (report.sound()) return int{mended > 0 && !wishes.look_only ? kRepaired : kSound};
  return int{report.all_repaired() ? kRepaired : kProblemsLeft};
}

int run(int argc, char** argv) {
  CLI::App app(
      "Checks the metadata of a streamfs that is not mounted. Reads no file data: that is checked "
      "against its checksums whenever it is read.",
      kProgram);
  Wishes wishes;
  prepare(app);
  app.footer(
      "Exit codes, as fsck(8) has them: 0 sound, 1 repaired, 4 problems left, 8 could not check, "
      "16 wrong use.");
  declare(app, wishes);
  if (const auto code = parse(app, argc, argv)) return *code == 0 ? kSound : kWrongUse;
  log_to_stderr(Talk::kWarnings);
  wishes.meta = absolute_path(wishes.meta);
  if (!wishes.mirror.empty()) wishes.mirror = absolute_path(wishes.mirror);
  wishes.data = absolute_data(wishes.data);
  const Result<int> code = examine(wishes);
  return code ? *code : explain_refusal(code.error());
}

}  // namespace

int main(int argc, char** argv) {
  return guarded(kProgram, [=] { return run(argc, argv); });
}
