#include "fuse-fs/nvme/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "fuse-fs/nvme/command.h"

namespace streamfs::nvme {
namespace {

constexpr uint16_t kTypeAndCode = 0x07ff;
constexpr uint16_t kDoNotRetry = 0x4000;

struct Meaning {
  uint16_t status;
  int code;
  std::string_view text;
};

// Type (0 generic, 1 of the command, 2 media, 3 path) and code.
constexpr std::array kMeanings = std::to_array<Meaning>({
    {0x0001, EOPNOTSUPP, "the controller does not know this command"},
    {0x0002, EINVAL, "the controller refuses a field of this command"},
    {0x0004, EAGAIN, "data transfer error"},
    {0x0005, EIO, "aborted by a loss of power"},
    {0x0006, EAGAIN, "internal error of the controller"},
    {0x0007, EAGAIN, "aborted"},
    {0x0008, EAGAIN, "aborted with its queue"},
    {0x000b, ENXIO, "no such namespace, or a wrong format for it"},
    {0x000c, EPROTO, "commands in a wrong order"},
    {0x0015, EACCES, "the controller denies this operation"},
    {0x001d, EBUSY, "the device is being sanitized"},
    {0x0020, EROFS, "the namespace is write protected"},
    {0x0021, EAGAIN, "interrupted; to be sent again"},
    {0x0022, EAGAIN, "transient transport error"},
    {0x0023, EACCES, "prohibited by the lockdown feature"},
    {0x0029, EOPNOTSUPP, "FDP is disabled in this endurance group"},
    {0x002a, ENOENT, "invalid list of placement handles"},
    {0x0080, ERANGE, "blocks beyond the end of the namespace"},
    {0x0081, ENOSPC, "the capacity of the namespace is exceeded"},
    {0x0082, EAGAIN, "the namespace is not ready"},
    {0x0083, EBUSY, "another host holds a reservation"},
    {0x0084, EBUSY, "the namespace is being formatted"},
    {0x0109, EOPNOTSUPP, "the controller does not have this log page"},
    {0x010a, EOPNOTSUPP, "invalid format"},
    {0x010f, EOPNOTSUPP, "this feature is not one of a namespace"},
    {0x017f, ENOSPC, "no stream resources are left"},
    {0x0182, EROFS, "the range is read only"},
    {0x0183, E2BIG, "too many or too long ranges in one command"},
    {0x0280, EIO, "write fault of the medium"},
    {0x0281, EIO, "the medium has lost this data"},
    {0x0282, EILSEQ, "end-to-end guard check failed"},
    {0x0283, EILSEQ, "end-to-end application tag check failed"},
    {0x0284, EILSEQ, "end-to-end reference tag check failed"},
    {0x0286, EACCES, "access denied"},
    {0x0287, EIO, "read of a block that was deallocated or never written"},
    {0x0300, EIO, "internal error of the path"},
    {0x0360, EIO, "the controller lost the path"},
    {0x0370, ENOLINK, "the host has no path now, as while the controller is reset"},
    {0x0371, ENOLINK, "aborted by the host, as when the controller is reset"},
});

}  // namespace

Error error_of(uint16_t status, std::string_view what) {
  const auto known = std::ranges::find(kMeanings, status & kTypeAndCode,
                                       [](const Meaning& m) { return int{m.status}; });
  const bool found = known != kMeanings.end();
  const bool final = (status & kDoNotRetry) != 0;
  const bool passes = found && (known->code == EAGAIN || known->code == ENOLINK);
  return {!found || (final && passes) ? EIO : known->code,
          fmt::format("{}: NVMe status {:x}h/{:02x}h{}{}{}", what, status >> 8 & 7, status & 0xff,
                      found ? ", " : "", found ? known->text : "",
                      final ? " (not worth repeating)" : "")};
}

std::string_view admin_name(uint8_t code) {
  switch (code) {
    case opcode::kGetLogPage:
      return "get log page";
    case opcode::kIdentify:
      return "identify";
    case opcode::kSetFeatures:
      return "set features";
    case opcode::kGetFeatures:
      return "get features";
    case opcode::kDirectiveSend:
      return "directive send";
    case opcode::kDirectiveReceive:
      return "directive receive";
    default:
      return "admin command";
  }
}

std::string_view io_name(uint8_t code) {
  switch (code) {
    case opcode::kFlush:
      return "flush";
    case opcode::kWrite:
      return "write";
    case opcode::kRead:
      return "read";
    case opcode::kDatasetManagement:
      return "deallocate";
    case opcode::kIoManagementReceive:
      return "reclaim unit handle status";
    case opcode::kIoManagementSend:
      return "reclaim unit handle update";
    default:
      return "I/O command";
  }
}

Result<uint32_t> outcome(const CompletionEntry& completion, std::string_view what) {
  if ((completion.status & kTypeAndCode) != 0) return error_of(completion.status, what);
  return completion.result;
}

}  // namespace streamfs::nvme
