// The interface to an NVMe controller and one of its namespaces. fuse-fs/blockdev implements it by
// a device file of Linux (passthrough_controller.h) and by an emulated SSD (emulated_controller.h).
//
// Thread safety: every method from any thread. A `Done` runs exactly once: in the caller's thread,
// in the call or in its next uring::drive(), or in a thread of the controller. It must not block
// and may start more commands.
//
// A reset of the controller disables Streams and releases their resources; FDP stays as it is. A
// crash of this process changes neither. Data is durable as the namespace guarantees.
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
  virtual ~Controller() = default;  // waits for the commands in flight
  virtual const std::string& path() const = 0;
  virtual uint32_t nsid() const = 0;
  virtual const char* transport() const = 0;  // how I/O commands reach it, for people
  // Returns whether start() executes the command on the caller's thread.
  virtual bool in_process() const { return false; }
  // Returns the transport's limit per command; MDTS is the controller's own limit.
  virtual uint64_t max_transfer_bytes() const = 0;

  // Send a command and wait for its completion. The opcode gives the direction of `data`, which may
  // be empty. Return dword 0. Errors: error_of() the status, or the transport's.
  virtual Result<uint32_t> admin(const Command& command, Bytes data) = 0;
  virtual Result<uint32_t> io(const Command& command, Bytes data) = 0;
  // Starts an I/O command. Requires: `data` stays alive and unchanged until `done`.
  virtual void start(const Command& command, Bytes data, Done done) = 0;
  // Starts an I/O command after a pause, for retries; may be called in a Done. A controller that
  // completes commands in the caller's thread sleeps there.
  virtual void start_after(std::chrono::milliseconds pause, const Command& command, Bytes data,
                           Done done) {
    std::this_thread::sleep_for(pause);
    start(command, data, std::move(done));
  }
};

}  // namespace streamfs::nvme
