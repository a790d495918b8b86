#include "lab/workload/lifetimes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/result.h"

namespace streamfs::lab {
namespace {

Error failed(int error, const std::string& directory, uint64_t bytes) {
  return {error,
          fmt::format("a temporary file of {} bytes in {} (TMPDIR says where)", bytes, directory)};
}

}  // namespace

Result<LifetimeFile> LifetimeFile::create(uint64_t writes) {
  const char* chosen = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const std::string directory = chosen != nullptr && *chosen != '\0' ? chosen : "/var/tmp";
  const uint64_t bytes = writes * sizeof(uint32_t);
  std::string path = directory + "/ssd-sim.XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);  // NOLINT(misc-include-cleaner): <stdlib.h>
  if (fd < 0) return failed(errno, directory, bytes);
  (void)unlink(path.c_str());
  // Reserves space now, so that no store to the mapping finds the filesystem full.
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes)); error != 0) {
    (void)::close(fd);
    return failed(error, directory, bytes);
  }
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  (void)::close(fd);
  if (mapped == MAP_FAILED) return failed(error, directory, bytes);
  return LifetimeFile(static_cast<uint32_t*>(mapped), writes);
}

LifetimeFile::~LifetimeFile() {
  if (lives_ != nullptr) (void)munmap(lives_, writes_ * sizeof(uint32_t));
}

}  // namespace streamfs::lab
