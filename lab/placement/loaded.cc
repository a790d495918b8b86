#include "lab/placement/loaded.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "lab/placement/plugin.h"
#include "lab/placement/policy.h"
#include "lab/workload/facts.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

constexpr const char* kSymbol = "streamfs_placement_policy";

Error refused(const std::string& path, const std::string& why) {
  return {EINVAL, fmt::format("placement {}: {}", path, why)};
}

const char* missing(const streamfs_placement& functions) {
  if (functions.name == nullptr) return "name";
  if (functions.create == nullptr) return "create";
  if (functions.destroy == nullptr) return "destroy";
  if (functions.host_classes == nullptr) return "host_classes";
  if (functions.classes == nullptr) return "classes";
  if (functions.for_write == nullptr) return "for_write";
  return functions.for_copy == nullptr ? "for_copy" : nullptr;
}

}  // namespace

void PlacementObject::close(void* handle) {
  (void)dlclose(handle);
}

Result<PlacementObject> PlacementObject::load(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's dlerror() speaks of the calling thread alone
  if (handle == nullptr) return refused(path, dlerror());
  PlacementObject object(handle, nullptr);
  void* symbol = dlsym(handle, kSymbol);
  if (symbol == nullptr) return refused(path, fmt::format("does not export {}()", kSymbol));
  object.functions_ = reinterpret_cast<decltype(&streamfs_placement_policy)>(symbol)();
  if (object.functions_ == nullptr) return refused(path, fmt::format("{}() gives NULL", kSymbol));
  if (object.functions_->abi_version != STREAMFS_PLACEMENT_ABI)
    return refused(path, fmt::format("made for version {} of the interface, this is version {}",
                                     object.functions_->abi_version, STREAMFS_PLACEMENT_ABI));
  if (const char* lacking = missing(*object.functions_))
    return refused(path, fmt::format("has no {}", lacking));
  return object;
}

LoadedPolicy::LoadedPolicy(std::string path, PlacementObject object)
    : path_(std::move(path)), object_(std::move(object)), functions_(object_.functions()) {}

LoadedPolicy::~LoadedPolicy() {
  if (policy_ != nullptr) functions_.destroy(policy_);
}

Result<std::unique_ptr<PlacementPolicy>> LoadedPolicy::make(const std::string& path,
                                                            const PolicyOptions& options,
                                                            const WorkloadFacts& facts) {
  SFS_ASSIGN(PlacementObject object, PlacementObject::load(path));
  std::unique_ptr<LoadedPolicy> loaded(new LoadedPolicy(path, std::move(object)));
  const streamfs_placement_facts known{.streams = options.streams,
                                       .pages = facts.footprint_pages,
                                       .pages_per_block = options.pages_per_block,
                                       .reserved = 0,
                                       .peak_live_pages = facts.peak_live_pages,
                                       .writes = facts.writes};
  loaded->policy_ = loaded->functions_.create(&known);
  if (loaded->policy_ == nullptr)
    return refused(path, fmt::format("create() gives NULL for {} streams", options.streams));
  loaded->classes_ = loaded->functions_.classes(loaded->policy_);
  loaded->host_classes_ = loaded->functions_.host_classes(loaded->policy_);
  if (loaded->host_classes_ == 0 || loaded->host_classes_ > loaded->classes_ ||
      loaded->classes_ > ssd::kMaxStreams)
    return refused(path, fmt::format("{} classes, {} of them for host writes: 1 to {} in all",
                                     loaded->classes_, loaded->host_classes_, ssd::kMaxStreams));
  return std::unique_ptr<PlacementPolicy>(std::move(loaded));
}

ssd::FrontierId LoadedPolicy::checked(uint16_t answer, uint16_t limit) {
  if (answer < limit) return answer;
  if (wrong_answer_ == UINT32_MAX) wrong_answer_ = answer;
  return 0;
}

ssd::FrontierId LoadedPolicy::for_write(const PageWrite& write, uint64_t clock) {
  const streamfs_page_write told{.page = write.page,
                                 .address = write.address,
                                 .request_first = write.request_first,
                                 .request_pages = write.request_pages,
                                 .context = write.context,
                                 .pstream = write.pstream,
                                 .vstream = write.vstream,
                                 .death = write.death,
                                 .prefill = write.prefill ? 1u : 0u,
                                 .reserved = 0};
  return checked(functions_.for_write(policy_, &told, clock), host_classes_);
}

ssd::FrontierId LoadedPolicy::for_copy(ssd::Lpn page, ssd::FrontierId source, uint64_t clock) {
  return checked(functions_.for_copy(policy_, page, source, clock), classes_);
}

void LoadedPolicy::trimmed(ssd::Lpn page, uint64_t clock) {
  if (functions_.trimmed != nullptr) functions_.trimmed(policy_, page, clock);
}

void LoadedPolicy::collected(ssd::FrontierId frontier, uint64_t opened_at, uint64_t clock) {
  if (functions_.collected != nullptr) functions_.collected(policy_, frontier, opened_at, clock);
}

Result<void> LoadedPolicy::status() const {
  if (wrong_answer_ == UINT32_MAX) return {};
  return refused(path_, fmt::format("answers class {}, but has {} and {} for host writes",
                                    wrong_answer_, classes_, host_classes_));
}

}  // namespace streamfs::lab
