// Keeps the name by which each directory was last found, as a cue for placement. Any answer is
// safe: at kNamesMax names it forgets all, and the name of an unknown directory is "".
// Thread safety: any thread. After a crash: memory only.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::data {

class DirectoryNames {
 public:
  struct Named {
    InodeId id;
    std::string name;
  };
  void learn(InodeId id, std::string_view name);  // "." and ".." are ignored
  void learn(std::span<const Named> all);
  std::string name(InodeId id) const;

 private:
  bool knows(InodeId id, std::string_view name) const SFS_REQUIRES_SHARED(mutex_);

  static constexpr size_t kNamesMax = 65536;
  mutable SharedMutex mutex_;  // leaf
  std::unordered_map<InodeId, std::string> names_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
