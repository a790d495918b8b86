// A controller and the one namespace of it that we use, whatever lies between: a device file of
// Linux (passthrough.h) or an emulated SSD (fuse-fs/blockdev/emulated_controller.h).
//
// Thread safety: every method from any thread. A `Done` runs exactly once, in the caller's thread,
// there or in its next uring::drive(), or in one of the controller's own; it must not block, and
// may start more.
// What a crash or a reset of the controller leaves: data as the namespace keeps it; Streams are
// disabled and their resources given back, FDP stays as it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"

namespace streamfs::nvme {

using Done = std::function<void(Result<uint32_t>)>;  // dword 0 of the completion

class Controller {
 public:
  virtual ~Controller() = default;  // waits for everything in flight
  virtual const std::string& path() const = 0;
  virtual uint32_t nsid() const = 0;
  virtual const char* transport() const = 0;  // the way of I/O commands, for people
  // What the way to the controller takes in one command; MDTS is the controller's own limit.
  virtual uint64_t max_transfer_bytes() const = 0;

  // Wait for the answer. `data` goes where the opcode says, and may be empty. Errors: error_of()
  // the status, or what the way to the controller says.
  virtual Result<uint32_t> admin(const Command& command, Bytes data) = 0;
  virtual Result<uint32_t> io(const Command& command, Bytes data) = 0;
  // An I/O command; `data` stays alive, and as it is, until `done`.
  virtual void start(const Command& command, Bytes data, Done done) = 0;
  // The same after a pause, for what is sent again; may be called in a Done. Who answers in the
  // caller's thread at once sleeps in it.
  virtual void start_after(std::chrono::milliseconds pause, const Command& command, Bytes data,
                           Done done) {
    std::this_thread::sleep_for(pause);
    start(command, data, std::move(done));
  }
};

}  // namespace streamfs::nvme
