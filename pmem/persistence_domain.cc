#include "pmem/persistence_domain.h"

#include <sys/sysmacros.h>
#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace streamfs::pmem {
namespace {

namespace fs = std::filesystem;

constexpr int kMostDepth = 8;  // of stacked devices

std::string worse(const std::string& one, const std::string& other) {
  for (const char* domain : {kDomainUnknown, kDomainMemoryController}) {
    if (one == domain || other == domain) return domain;
  }
  return one;
}

// Returns the persistence domain of the nd region, which is a device above this one.
std::string of_region_above(fs::path device) {
  for (; device.has_relative_path(); device = device.parent_path()) {
    std::string domain;
    if (std::ifstream(device / "persistence_domain") >> domain) return domain;
  }
  return kDomainUnknown;
}

std::string of_device(const fs::path& link, int depth) {
  std::error_code failed;
  const fs::path device = fs::canonical(link, failed);
  if (failed || depth == kMostDepth) return kDomainUnknown;
  std::string domain;
  for (const fs::directory_entry& slave : fs::directory_iterator(device / "slaves", failed)) {
    const std::string its = of_device(slave.path(), depth + 1);
    domain = domain.empty() ? its : worse(domain, its);
  }
  return domain.empty() ? of_region_above(device) : domain;
}

}  // namespace

std::string persistence_domain(const fs::path& sys, const char* kind, dev_t device) {
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  const std::string domain = of_device(sys / "dev" / kind / number, 0);
  return domain == kDomainCpuCache || domain == kDomainMemoryController ? domain : kDomainUnknown;
}

}  // namespace streamfs::pmem
