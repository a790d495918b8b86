// The savings by streams that the learning daemon estimates with its shadow devices. They are kept
// here so that they can be reported while the daemon is away. The daemon keeps them across mounts
// and restarts.
// Thread safety: any thread. After a crash: nothing is left; the next daemon tells them again.
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
  // Takes the daemon's figures (base/wire/control.h, saved). Errors: EINVAL, they have another
  // version or are impossible; the earlier figures stay.
  Result<void> take(const nlohmann::json& told, int64_t now_ms);
  // Returns the figures with "told_ms"; null: there are none.
  nlohmann::json now() const;
  // Returns the moments of the past that the daemon told; may be empty.
  nlohmann::json history() const;

 private:
  mutable Mutex mutex_;  // leaf
  nlohmann::json told_ SFS_GUARDED_BY(mutex_);
  nlohmann::json history_ SFS_GUARDED_BY(mutex_) = nlohmann::json::array();
};

}  // namespace streamfs::frontend
