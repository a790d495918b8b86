// Converts the status field of a completion to an errno and a sentence.
// Document: NVM Express Base 2.0, "Status Field Definition"; FDP's codes: TP4146.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace streamfs::nvme {

// Without the phase bit: code 7:0, type 10:8, retry delay 12:11, more 13, do not retry 14.
enum class Status : uint16_t {
  kSuccess = 0,
  kInvalidOpcode = 0x0001,
  kInvalidField = 0x0002,
  kInternalError = 0x0006,
  kInvalidNamespace = 0x000b,
  kCommandInterrupted = 0x0021,
  kTransientTransportError = 0x0022,
  kNotReady = 0x0082,
  kAbortedByHost = 0x0371,
  kFdpDisabled = 0x0029,
  kInvalidPlacementHandles = 0x002a,
  kWriteProtected = 0x0020,
  kBeyondCapacity = 0x0080,
  kCapacityExceeded = 0x0081,
  kInvalidLogPage = 0x0109,
  kSizeLimitExceeded = 0x0183,
  kStreamAllocationFailed = 0x017f,
  kWriteFault = 0x0280,
  kUnrecoveredRead = 0x0281,
};

struct CompletionEntry {
  uint16_t status = 0;
  uint32_t result = 0;  // dword 0
};

// Returns the errno that fits best, EIO if none does, and a sentence that begins with `what`, the
// command's name. Three errnos have one meaning each:
// EINVAL: Invalid Field, the status of a write that is refused for its stream;
// EAGAIN: a transient state (interrupted, aborted, not ready, a transport or internal error), after
// which the command may be sent again;
// ENOLINK: likewise, once the host has a path to the controller again.
// EAGAIN and ENOLINK become EIO if the status says Do Not Retry.
Error error_of(uint16_t status, std::string_view what);
// Return the name of the command with this opcode, for `what`.
std::string_view admin_name(uint8_t code);
std::string_view io_name(uint8_t code);
// Returns dword 0, or the error of the status.
Result<uint32_t> outcome(const CompletionEntry& completion, std::string_view what);

}  // namespace streamfs::nvme
