// How far a store must get to survive a power cut, as the kernel tells of the memory's region (ACPI
// NFIT): "cpu_cache" (eADR: it is there already), "memory_controller" (ADR: the line has to be
// written back), or "unknown". Thread safety: pure but for reading /sys.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace streamfs::pmem {

inline constexpr const char* kDomainCpuCache = "cpu_cache";
inline constexpr const char* kDomainMemoryController = "memory_controller";
inline constexpr const char* kDomainUnknown = "unknown";

// Of a devdax device ("char"), or of the block device ("block") beneath a DAX file system, a
// partition or mapped device too: what lies on several regions is as good as the worst of them.
std::string persistence_domain(const std::filesystem::path& sys, const char* kind, dev_t device);

}  // namespace streamfs::pmem
