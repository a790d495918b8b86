#include "fuse-fs/frontend/ring_threads.h"

#include <pthread.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace streamfs::frontend {
namespace {

// Returns the field majflt of /proc/PID/task/TID/stat, the tenth after the name; proc(5).
uint64_t major_faults(const std::string& stat) {
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 10; ++i) fields >> field;
  return field.empty() ? 0 : std::stoull(field);
}

}  // namespace

bool is_ring_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return std::string_view(name.data()).starts_with(kRingThreads);
}

uint64_t ring_thread_faults() {
  const std::string begins = "(" + std::string(kRingThreads);
  uint64_t faults = 0;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::ifstream in(task.path() / "stat");
    std::string stat;
    std::getline(in, stat);  // reads nothing, and throws nothing, if the thread has ended
    if (stat.find(begins) != std::string::npos) faults += major_faults(stat);
  }
  return faults;
}

}  // namespace streamfs::frontend
