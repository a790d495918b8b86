// Exit codes of the programs; fsck.streamfs has those of fsck(8) instead. Most numbers are those of
// sysexits.h.
#pragma once

namespace streamfs::exit_code {
inline constexpr int kOk = 0;
inline constexpr int kNoMatch = 2;        // streamctl probe or setup found no device
inline constexpr int kUsage = 64;         // unknown option, missing argument
inline constexpr int kForeign = 65;       // not a streamfs device, or not this filesystem's pair
inline constexpr int kNoDevice = 66;      // a path does not exist or cannot be opened
inline constexpr int kNoFuse = 69;        // /dev/fuse or transport=io_uring not available
inline constexpr int kIo = 70;            // any other error
inline constexpr int kNotEmpty = 73;      // the target holds something, or exists
inline constexpr int kTooSmall = 74;      // device below the minimum
inline constexpr int kBusy = 75;          // already mounted or locked
inline constexpr int kCorrupt = 76;       // damaged metadata: fsck.streamfs tells what to do
inline constexpr int kNoPermission = 77;  // no access to a device or file, or it is read-only
}  // namespace streamfs::exit_code
