// Holds logind's delay inhibitor, so that work can be done before the machine sleeps.
//
//   Inhibit("sleep", "delay") ──PrepareForSleep(true)──► prepare() ──► let go ──► (sleep)
//      ▲────────────────────────PrepareForSleep(false)──────────────────────────────┘
//
// logind waits 5 s at most (InhibitDelayMaxSec=), so prepare() has to be done before that. The
// safety of data never depends on it.
// Thread safety: one thread. After a crash: the kernel releases the inhibitor.
#pragma once

#include <systemd/sd-bus.h>

#include <functional>
#include <memory>

#include "base/result.h"

namespace streamfs::tools {

class SuspendWatch {
 public:
  // Takes the inhibitor. Owns `bus`, which is connected to logind (or to a test's), from then on,
  // also after an error. Errors: those of the bus; EIO, logind refuses. `prepare` runs in step().
  static Result<std::unique_ptr<SuspendWatch>> open(sd_bus* bus, std::function<void()> prepare);
  ~SuspendWatch();
  SuspendWatch(const SuspendWatch&) = delete;
  SuspendWatch& operator=(const SuspendWatch&) = delete;

  bool holds() const { return inhibitor_ >= 0; }
  // Handles one message if one has come; otherwise waits for one, `wait_us` at most. After a
  // suspend it takes the inhibitor again; if that fails, holds() stays false until the next one.
  // Errors: the bus is gone.
  Result<void> step(uint64_t wait_us);

 private:
  SuspendWatch(sd_bus* bus, std::function<void()> prepare)
      : bus_(bus), prepare_(std::move(prepare)) {}
  static int on_sleep(sd_bus_message* message, void* self, sd_bus_error* error);
  Result<void> take();
  void let_go();

  sd_bus* const bus_;
  const std::function<void()> prepare_;
  int inhibitor_ = -1;
};

}  // namespace streamfs::tools
