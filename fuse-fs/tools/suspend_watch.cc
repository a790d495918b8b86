#include "fuse-fs/tools/suspend_watch.h"

#include <fcntl.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"

namespace streamfs::tools {
namespace {

constexpr const char *kLogind = "org.freedesktop.login1", *kPath = "/org/freedesktop/login1",
                     *kManager = "org.freedesktop.login1.Manager";

}  // namespace

Result<std::unique_ptr<SuspendWatch>> SuspendWatch::open(sd_bus* bus,
                                                         std::function<void()> prepare) {
  std::unique_ptr<SuspendWatch> watch(new SuspendWatch(bus, std::move(prepare)));
  const int code = sd_bus_match_signal(bus, nullptr, kLogind, kPath, kManager, "PrepareForSleep",
                                       &SuspendWatch::on_sleep, watch.get());
  if (code < 0) return Error{-code, "listening for PrepareForSleep"};
  SFS_TRY(watch->take());
  return watch;
}

SuspendWatch::~SuspendWatch() {
  let_go();
  sd_bus_close_unref(bus_);
}

Result<void> SuspendWatch::take() {
  sd_bus_error error{};
  sd_bus_message* answer = nullptr;
  int fd = -1;
  int code = sd_bus_call_method(bus_, kLogind, kPath, kManager, "Inhibit", &error, &answer, "ssss",
                                "sleep", "streamfs", "What was written is made durable", "delay");
  if (code >= 0) code = sd_bus_message_read(answer, "h", &fd);
  if (code >= 0) inhibitor_ = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  Result<void> done;
  if (code < 0) {
    done = Error{EIO, std::string("logind gives no inhibitor: ") +
                          (error.message != nullptr ? error.message : "no answer")};
  } else if (inhibitor_ < 0) {
    done = Error{errno, "logind's inhibitor"};
  }
  sd_bus_message_unref(answer);
  sd_bus_error_free(&error);
  return done;
}

void SuspendWatch::let_go() {
  if (inhibitor_ >= 0) close(std::exchange(inhibitor_, -1));
}

int SuspendWatch::on_sleep(sd_bus_message* message, void* self, sd_bus_error*) {
  auto& watch = *static_cast<SuspendWatch*>(self);
  int begins = 0;
  if (sd_bus_message_read(message, "b", &begins) < 0) return 0;
  if (begins != 0) {
    watch.prepare_();
    watch.let_go();
  } else if (!watch.holds()) {
    (void)watch.take();
  }
  return 0;
}

Result<void> SuspendWatch::step(uint64_t wait_us) {
  const int code = sd_bus_process(bus_, nullptr);
  if (code > 0) return {};
  if (code < 0) return Error{-code, "logind is gone"};
  const int waited = sd_bus_wait(bus_, wait_us);
  if (waited < 0 && waited != -EINTR) return Error{-waited, "logind is gone"};
  return {};
}

}  // namespace streamfs::tools
