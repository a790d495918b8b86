#include "fuse-fs/data/directory_names.h"

#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::data {

void DirectoryNames::learn(InodeId id, std::string_view name) {
  if (name == "." || name == "..") return;
  {
    const ReadLock lock(mutex_);
    const auto known = names_.find(id);
    if (known != names_.end() && known->second == name) return;
  }
  const WriteLock lock(mutex_);
  if (names_.size() >= kNamesMax) names_.clear();
  names_[id] = name;
}

std::string DirectoryNames::name(InodeId id) const {
  const ReadLock lock(mutex_);
  const auto known = names_.find(id);
  return known == names_.end() ? std::string() : known->second;
}

}  // namespace streamfs::data
