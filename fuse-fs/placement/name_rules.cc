#include "fuse-fs/placement/name_rules.h"

#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "libstream/rules.h"

namespace streamfs::placement {

NameRules::NameRules() : rules_(std::make_unique<stream_rules>()) {
  stream_rules_clear(rules_.get());
  stream_rules_load_built_in(rules_.get());
  for (const stream_profile& profile : std::span(rules_->profiles, rules_->profile_count)) {
    for (const stream_rule& rule : std::span(profile.rules, profile.count))
      built_in_.emplace(rule.vstream);
  }
  stream_rules_clear(rules_.get());
}

void NameRules::complain(void* self, const char* file, unsigned line, unsigned column,
                         const char* what) {
  std::string place = file;
  if (line != 0) place += ":" + std::to_string(line) + ":" + std::to_string(column);
  static_cast<NameRules*>(self)->complaints_.push_back(place + ": " + what);
}

Result<NameRules> NameRules::load(const std::string& folder, const std::string& profile) {
  NameRules made;
  if (!folder.empty()) stream_rules_load_folder(made.rules_.get(), folder.c_str(), complain, &made);
  stream_rules_load_built_in(made.rules_.get());
  const char* wanted = profile.empty() ? nullptr : profile.c_str();
  if (stream_rules_choose(made.rules_.get(), wanted) == 0) return made;
  std::string known = "default";
  for (size_t i = 0; i < made.rules_->profile_count; ++i) {
    known += std::string(", ") + made.rules_->profiles[i].name;
  }
  return Error{EINVAL, "no profile is called '" + profile + "' (" + known + ")"};
}

uint32_t NameRules::life_of(const std::string& vstream) const {
  return stream_rules_life(rules_.get(), vstream.c_str());
}

const char* NameRules::match(std::string_view directory, std::string_view name,
                             std::string_view thread) const {
  std::string path(directory);
  if (!path.empty()) path += '/';
  path += name;
  const int flags = name.empty() ? O_TMPFILE : 0;
  const stream_rule* rule =
      stream_rules_match(rules_.get(), path.c_str(), flags, std::string(thread).c_str());
  return rule == nullptr ? nullptr : rule->vstream;
}

}  // namespace streamfs::placement
