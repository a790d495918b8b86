// The persistence domain of memory, as the kernel reports it for its nd region (ACPI NFIT). A store
// survives a power cut once it is there: "cpu_cache" (eADR: at once), "memory_controller" (ADR:
// after the line's write-back), or "unknown". Thread safety: pure except for reading /sys.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace streamfs::pmem {

inline constexpr const char* kDomainCpuCache = "cpu_cache";
inline constexpr const char* kDomainMemoryController = "memory_controller";
inline constexpr const char* kDomainUnknown = "unknown";

// Returns the domain of a devdax device (`kind` "char"), or of the block device ("block") beneath a
// DAX filesystem, also a partition or a mapped device. A device on several regions has the domain
// of the worst. `sys` is /sys, or a stand-in.
std::string persistence_domain(const std::filesystem::path& sys, const char* kind, dev_t device);

}  // namespace streamfs::pmem
