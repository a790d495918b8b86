// What streams save of the SSD, as the learning daemon reckons by its shadow devices; kept here so
// that it is told while the daemon is away. The daemon keeps it across mounts and restarts.
// Thread safety: any thread. Crash: memory only; the next daemon tells it again.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::frontend {

class Savings {
 public:
  static constexpr int kVersion = 1;
  static constexpr size_t kMomentsMax = 256, kMomentFigures = 7;
  // Takes the daemon's figures (base/wire/control.h, saved). EINVAL with the reason for what is of
  // another version or cannot be; what was told before stays then.
  Result<void> take(const nlohmann::json& told, int64_t now_ms);
  // With "told_ms", or null: nobody told.
  nlohmann::json now() const;
  // Moments of the past, as told; empty where none were.
  nlohmann::json history() const;

 private:
  mutable Mutex mutex_;  // leaf
  nlohmann::json told_ SFS_GUARDED_BY(mutex_);
  nlohmann::json history_ SFS_GUARDED_BY(mutex_) = nlohmann::json::array();
};

}  // namespace streamfs::frontend
