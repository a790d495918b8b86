// A placement policy from a shared object; plugin.h is the contract.
// Thread safety: as PlacementPolicy. Loading runs the object's constructors: it is code that the
// user named, with the user's rights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "lab/placement/plugin.h"
#include "lab/placement/policy.h"
#include "lab/workload/facts.h"

namespace streamfs::lab {

// The handle of dlopen(3), and the functions that the object exports.
class PlacementObject {
 public:
  // Errors: EINVAL with the path and the reason: dlopen(3) fails, streamfs_placement_policy is not
  // exported, the ABI is another one, or a function is missing.
  static Result<PlacementObject> load(const std::string& path);
  const streamfs_placement& functions() const { return *functions_; }

 private:
  PlacementObject(void* handle, const streamfs_placement* functions)
      : handle_(handle, close), functions_(functions) {}
  static void close(void* handle);

  std::unique_ptr<void, void (*)(void*)> handle_;
  const streamfs_placement* functions_;
};

class LoadedPolicy final : public PlacementPolicy {
 public:
  // Errors: those of PlacementObject; EINVAL for a policy that cannot start or whose numbers of
  // classes are impossible.
  static Result<std::unique_ptr<PlacementPolicy>> make(const std::string& path,
                                                       const PolicyOptions& options,
                                                       const WorkloadFacts& facts);
  ~LoadedPolicy() override;
  LoadedPolicy(const LoadedPolicy&) = delete;
  LoadedPolicy& operator=(const LoadedPolicy&) = delete;

  uint16_t classes() const override { return classes_; }
  uint16_t host_classes() const override { return host_classes_; }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override;
  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId source, uint64_t clock) override;
  void trimmed(ssd::Lpn page, uint64_t clock) override;
  void collected(ssd::FrontierId frontier, uint64_t opened_at, uint64_t clock) override;
  // Errors: EINVAL if an answer was no class; class 0 replaced it.
  Result<void> status() const override;

 private:
  LoadedPolicy(std::string path, PlacementObject object);
  ssd::FrontierId checked(uint16_t answer, uint16_t limit);

  const std::string path_;
  const PlacementObject object_;
  const streamfs_placement& functions_;
  void* policy_ = nullptr;
  uint16_t classes_ = 0, host_classes_ = 0;
  uint32_t wrong_answer_ = UINT32_MAX;  // the first one, if any
};

}  // namespace streamfs::lab
