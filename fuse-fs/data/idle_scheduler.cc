#include "fuse-fs/data/idle_scheduler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "fuse-fs/blockdev/device.h"

namespace streamfs::data {
namespace {

int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace

IdleScheduler::IdleScheduler(blockdev::Device& device, Activity& activity, Clock& clock,
                             Setup setup)
    : device_(device),
      activity_(activity),
      clock_(clock),
      setup_(std::move(setup)),
      capabilities_(device.capabilities()) {
  activity_.on_request([this] { wake(); });
}

void IdleScheduler::start() {
  if (setup_.when == IdleWorkWhen::kOff) return;
  thread_ = std::thread([this] {
    while (pause(kLookMs)) round();
  });
}

void IdleScheduler::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool IdleScheduler::pause(uint32_t milliseconds) {
  const MutexLock lock(mutex_);
  if (!stopping_) changed_.wait_for(mutex_, std::chrono::milliseconds(milliseconds));
  return !stopping_;
}

void IdleScheduler::wake() {
  woken_ns_ = steady_ns();
  changed_.notify_all();
}

void IdleScheduler::set_state(IdleStatus::State state) {
  const MutexLock lock(mutex_);
  status_.state = state;
}

void IdleScheduler::round() {
  const uint64_t now = clock_.monotonic_ms();
  if (!detector_.look(now, activity_.begun(), activity_.under_way()))
    return set_state(IdleStatus::State::kBusy);
  if (rested_at_ == activity_.begun()) return set_state(IdleStatus::State::kRested);
  if (!allowed(now)) return set_state(IdleStatus::State::kOnBattery);
  use_idle_time();
}

bool IdleScheduler::allowed(uint64_t now_ms) {
  if (setup_.when == IdleWorkWhen::kAlways) return true;
  if (battery_asked_ms_ == UINT64_MAX || now_ms - battery_asked_ms_ >= kBatteryMs) {
    battery_asked_ms_ = now_ms;
    battery_ = setup_.on_battery();
  }
  return !battery_;
}

void IdleScheduler::use_idle_time() {
  const MutexLock turn(turn_);
  set_state(IdleStatus::State::kWorking);
  const uint64_t begun = activity_.begun();
  woken_ns_ = 0;
  activity_.watch(true);
  const auto has_to_stop = [&] { return stopping_ || asking_ > 0 || activity_.begun() != begun; };
  const Result<void> reclaimed = setup_.reclaim();
  if (!reclaimed.ok()) spdlog::debug("idle: {}", reclaimed.error().message());
  Work done = blockdev::IdleWork{false, 0, 0};
  if (!has_to_stop()) done = device_.begin_idle({has_to_stop});
  if (done.ok() && capabilities_.means == blockdev::IdleMeans::kByItself) wait_for_request(begun);
  if (const auto ended = device_.end_idle(); !ended.ok())
    spdlog::warn("idle: {}", ended.error().message());
  activity_.watch(false);
  const bool came = woken_ns_ != 0 || activity_.begun() != begun;
  if (!came && asking_ == 0 && (!done.ok() || done->finished)) rested_at_ = begun;
  note(done, came);
}

void IdleScheduler::wait_for_request(uint64_t begun) {
  const MutexLock lock(mutex_);
  const uint64_t most_ms = capabilities_.by_itself_ms_max;
  const int64_t end_ns = most_ms == 0 ? INT64_MAX : steady_ns() + int64_t(most_ms) * 1'000'000;
  // A wake-up may come between the check and the wait, so waits are short.
  while (!stopping_ && asking_ == 0 && woken_ns_ == 0 && activity_.begun() == begun &&
         steady_ns() < end_ns)
    changed_.wait_for(mutex_, std::chrono::milliseconds(5));
}

void IdleScheduler::note(const Work& done, bool interrupted) {
  const int64_t woken = woken_ns_.load();
  const MutexLock lock(mutex_);
  ++status_.periods;
  status_.state = interrupted ? IdleStatus::State::kBusy : IdleStatus::State::kRested;
  if (interrupted) ++status_.interrupted;
  if (interrupted && woken != 0)
    status_.slowest_stop_us =
        std::max(status_.slowest_stop_us, static_cast<uint64_t>((steady_ns() - woken) / 1000));
  if (!done.ok()) {
    ++status_.failed;
    status_.last_error = done.error().message();
    return;
  }
  status_.copied_bytes += done->copied_bytes;
  status_.erases += done->erases;
}

Result<MaintenanceRun> IdleScheduler::work(Asked what, uint64_t milliseconds) {
  ++asking_;
  const MutexLock turn(turn_);
  --asking_;
  const uint64_t deadline = clock_.monotonic_ms() + milliseconds, begun = activity_.begun();
  const bool gives_way = what == Asked::kMaintain;
  const auto has_to_stop = [&] {
    return stopping_ || clock_.monotonic_ms() >= deadline ||
           (gives_way && activity_.begun() != begun);
  };
  MaintenanceRun run;
  run.how = capabilities_.how;
  if (gives_way && activity_.under_way()) return run;
  SFS_TRY(setup_.reclaim());
  const Work done =
      gives_way ? device_.begin_idle({has_to_stop}) : device_.prepare_poweroff({has_to_stop});
  if (gives_way) SFS_TRY(device_.end_idle());
  if (!done.ok()) return done.error();
  run.finished = done->finished;
  run.copied_bytes = done->copied_bytes;
  run.erases = done->erases;
  const MutexLock lock(mutex_);
  status_.copied_bytes += run.copied_bytes;
  status_.erases += run.erases;
  if (!gives_way) ++status_.poweroffs_prepared;
  return run;
}

IdleStatus IdleScheduler::status() {
  const blockdev::Pressure pressure = device_.pressure();
  const MutexLock lock(mutex_);
  IdleStatus out = status_;
  if (setup_.when == IdleWorkWhen::kOff) out.state = IdleStatus::State::kOff;
  out.how = capabilities_.how;
  out.pressure = pressure;
  return out;
}

}  // namespace streamfs::data
