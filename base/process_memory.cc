#include "base/process_memory.h"

#include <cstdint>
#include <fstream>
#include <ios>
#include <limits>
#include <string>

namespace streamfs {

ProcessMemory process_memory() {
  ProcessMemory out;
  std::ifstream status("/proc/self/status");
  std::string name;
  uint64_t kib = 0;
  while (status >> name) {
    const bool anonymous = name == "RssAnon:";
    const bool mapped = name == "RssFile:" || name == "RssShmem:";
    if ((anonymous || mapped) && status >> kib) {
      (anonymous ? out.anonymous_bytes : out.mapped_bytes) += kib * 1024;
    }
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return out;
}

}  // namespace streamfs
