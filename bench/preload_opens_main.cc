// Opens and closes files, or reads and writes one, over and over, for bench/preload to run with and
// without the preload library. Prints the nanoseconds of one round, the fastest of twenty parts.
// usage: preload_opens open-to-read|open-to-write|read-and-write FILE COUNT
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ratio>
#include <string_view>

namespace {

constexpr int kParts = 20;

bool open_and_close(const char* path, int flags) {
  const int fd = open(path, flags);
  return fd >= 0 && close(fd) == 0;
}

bool read_and_write(int fd) {
  char byte = 0;
  return pwrite(fd, "x", 1, 0) == 1 && pread(fd, &byte, 1, 0) == 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const std::string_view kind = argv[1];
  const long each = std::strtol(argv[3], nullptr, 10) / kParts;
  const int fd = open(argv[2], O_RDWR | O_CREAT, 0600);
  const bool io = kind == "read-and-write";
  const int flags = kind == "open-to-read" ? O_RDONLY : O_RDWR;
  double best = 1e18;
  for (int part = 0; part < kParts; ++part) {
    const auto began = std::chrono::steady_clock::now();
    for (long i = 0; i < each; ++i) {
      if (!(io ? read_and_write(fd) : open_and_close(argv[2], flags))) return 70;
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - began;
    best = std::min(best, spent.count() / static_cast<double>(each));
  }
  std::printf("%.1f\n", best);
  return 0;
}
