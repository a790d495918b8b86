#include "lab/figures/recorded/recording.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include "base/result.h"

// f2fs_phone.S defines these.
extern "C" const char kF2fsPhone[], kF2fsPhoneEnd[];

namespace streamfs::lab::figures {

Result<Recording> Recording::f2fs_phone() {
  Recording recording(::memfd_create("f2fs_phone", MFD_CLOEXEC));
  if (recording.fd_ < 0) return Error{errno, "memory for a recorded trace"};
  for (const char* at = kF2fsPhone; at != kF2fsPhoneEnd;) {
    const ssize_t done = ::write(recording.fd_, at, static_cast<size_t>(kF2fsPhoneEnd - at));
    if (done < 0) return Error{errno, "memory for a recorded trace"};
    at += done;
  }
  return recording;
}

Recording::~Recording() {
  if (fd_ >= 0) ::close(fd_);
}

Recording::Recording(Recording&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

std::string Recording::path() const {
  return fmt::format("/proc/self/fd/{}", fd_);
}

}  // namespace streamfs::lab::figures
