#include "fuse-fs/tools/streamctl_maintenance.h"

#include <fmt/format.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ratio>
#include <thread>

#include "base/result.h"
#include "fuse-fs/tools/control_client.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/streamctl_print.h"
#include "fuse-fs/tools/suspend_watch.h"
#include "fuse-fs/tools/system_state.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;
using WallClock = std::chrono::steady_clock;

// logind waits 5 s (InhibitDelayMaxSec=), and the last slice may take longer than it should.
constexpr double kBeforeSleepSeconds = 2.5;
constexpr uint64_t kWorkMs = 500;                // a slice
constexpr std::chrono::milliseconds kPause{20};  // between two, while programs are at work

// Runs slice after slice until no work is left or the time is over.
Result<json> in_slices(const MaintenanceArguments& arguments, const char* op) {
  SFS_ASSIGN(ControlClient client, ControlClient::connect(arguments.path));
  const auto end = WallClock::now() + std::chrono::duration<double>(arguments.seconds);
  json all = {{"finished", false}, {"copied_bytes", 0}, {"erases", 0}};
  do {
    const std::chrono::duration<double, std::milli> left = end - WallClock::now();
    const auto slice = static_cast<uint64_t>(std::clamp<double>(left.count(), 0, kWorkMs));
    SFS_ASSIGN(const json now, client.ask({{"op", op}, {"ms", slice}}));
    for (const char* sum : {"copied_bytes", "erases"})
      all[sum] = all.value(sum, uint64_t{0}) + now.value(sum, uint64_t{0});
    all["finished"] = now.value("finished", true);
    all["device"] = now.value("device", "");
    if (all["finished"] != true) std::this_thread::sleep_for(kPause);
  } while (all["finished"] != true && WallClock::now() < end);
  return all;
}

Result<void> work(const MaintenanceArguments& arguments, const char* op) {
  SFS_ASSIGN(const json done, in_slices(arguments, op));
  if (arguments.style.json) {
    print_json(done);
  } else {
    print_maintenance(done, arguments.style);
  }
  return {};
}

}  // namespace

Result<void> maintain(const MaintenanceArguments& arguments) {
  return work(arguments, "maintain");
}

Result<void> prepare_poweroff(const MaintenanceArguments& arguments) {
  if (arguments.if_stopping && !system_is_stopping()) return {};
  return work(arguments, "prepare_poweroff");
}

Result<void> watch_suspend(const MaintenanceArguments& arguments) {
  sd_bus* bus = nullptr;
  if (const int code = sd_bus_open_system(&bus); code < 0)
    return Error{-code, "the system's D-Bus"};
  MaintenanceArguments before = arguments;
  before.seconds = kBeforeSleepSeconds;
  const auto prepare = [before] {
    const Result<void> done = work(before, "prepare_poweroff");
    if (!done.ok()) fmt::print(stderr, "before suspend: {}\n", done.error().message());
    std::fflush(stdout);
  };
  SFS_ASSIGN(const auto watch, SuspendWatch::open(bus, prepare));
  sd_notify(0, "READY=1\nSTATUS=waiting for suspend");
  for (;;) SFS_TRY(watch->step(UINT64_MAX));
}

Result<void> trim(const MaintenanceArguments& arguments) {
  SFS_ASSIGN(ControlClient client, ControlClient::connect(arguments.path));
  SFS_TRY(client.ask({{"op", "sync"}}));
  uint64_t bytes = 0;
  for (json next = 0; next.is_number();) {
    SFS_ASSIGN(const json now, client.ask({{"op", "trim"}, {"from", next}, {"ms", kWorkMs}}));
    bytes += now.value("bytes", uint64_t{0});
    next = now.at("next");
  }
  if (arguments.style.json) {
    print_json({{"trimmed_bytes", bytes}});
  } else {
    fmt::print("{} of free space trimmed\n", bytes_text(bytes, arguments.style));
  }
  return {};
}

}  // namespace streamfs::tools
