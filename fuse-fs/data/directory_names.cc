#include "fuse-fs/data/directory_names.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::data {
namespace {

bool is_dot_or_dot_dot(std::string_view name) {
  return name == "." || name == "..";
}

}  // namespace

bool DirectoryNames::knows(InodeId id, std::string_view name) const {
  const auto known = names_.find(id);
  return known != names_.end() && known->second == name;
}

void DirectoryNames::learn(InodeId id, std::string_view name) {
  if (is_dot_or_dot_dot(name)) return;
  {
    const ReadLock lock(mutex_);
    if (knows(id, name)) return;
  }
  const WriteLock lock(mutex_);
  if (names_.size() >= kNamesMax) names_.clear();
  names_[id] = name;
}

// Takes one lock for all known names, which most are. Without locks between them, their waits for
// memory overlap.
void DirectoryNames::learn(std::span<const Named> all) {
  std::vector<const Named*> unknown;
  {
    const ReadLock lock(mutex_);
    for (const Named& one : all) {
      if (!knows(one.id, one.name)) unknown.push_back(&one);
    }
  }
  for (const Named* one : unknown) learn(one->id, one->name);
}

std::string DirectoryNames::name(InodeId id) const {
  const ReadLock lock(mutex_);
  const auto known = names_.find(id);
  return known == names_.end() ? std::string() : known->second;
}

}  // namespace streamfs::data
