// Matches a new file's name against name rules. The rules come from the profiles that the preload
// library also uses, and serve programs that cannot be preloaded. They are read once, at mount.
//
// Thread safety: constant after load(), so any thread reads without a lock. After a crash: nothing
// is stored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "libstream/rules.h"

namespace streamfs::placement {

// The default folder of profiles.
inline constexpr const char* kProfilesFolder = STREAM_PROFILES_FOLDER;

class NameRules {
 public:
  // Loads *.toml of the folder ("": none) and the built-in profiles. Chooses the rules of
  // `profile`, or for "" and "default" the rules of all profiles that hold everywhere. Each mistake
  // in a file is left out and adds a sentence to complaints(). Errors: EINVAL for an unknown
  // profile.
  static Result<NameRules> load(const std::string& folder, const std::string& profile);

  // Returns the vStream name for a file created as `name` (empty: O_TMPFILE) in `directory` by
  // `thread`; nullptr if no rule matches.
  const char* match(std::string_view directory, std::string_view name,
                    std::string_view thread) const;

  // Returns the RWH_WRITE_LIFE_* of the first rule of any profile for this vStream; 0: no rule.
  uint32_t life_of(const std::string& vstream) const;

  // Returns whether a built-in profile has a rule for this vStream.
  bool is_built_in(std::string_view vstream) const { return built_in_.contains(vstream); }

  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  NameRules();
  static void complain(void* self, const char* file, unsigned line, unsigned column,
                       const char* what);
  std::unique_ptr<stream_rules> rules_;
  std::set<std::string, std::less<>> built_in_;
  std::vector<std::string> complaints_;
};

}  // namespace streamfs::placement
