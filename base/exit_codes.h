// Exit codes shared by every program of the project, beside 0 and fsck's own bits.
#pragma once

namespace streamfs::exit_code {
inline constexpr int kOk = 0;
inline constexpr int kNoMatch = 2;        // streamctl probe found no streamfs, as blkid(8)
inline constexpr int kUsage = 64;         // unknown option, missing argument (EX_USAGE)
inline constexpr int kNoDevice = 66;      // a path does not exist or cannot be opened
inline constexpr int kForeign = 65;       // not a streamfs device, or not this filesystem's pair
inline constexpr int kNotEmpty = 73;      // mkfs without -f on a device that holds something
inline constexpr int kTooSmall = 74;      // device below the minimum
inline constexpr int kBusy = 75;          // already mounted or locked
inline constexpr int kNoPermission = 77;  // needs root or a group
inline constexpr int kNoFuse = 69;        // /dev/fuse missing or refused
inline constexpr int kCorrupt = 76;       // both superblocks bad; restore needed
inline constexpr int kIo = 70;            // any other error
}  // namespace streamfs::exit_code
