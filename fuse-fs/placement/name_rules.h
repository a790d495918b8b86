// Name rules at create: the profiles that the preload library knows too, for programs that it
// cannot enter. Read once, at mount.
//
// Thread safety: constructed by one thread; then match(), any thread, without a lock.
// Crash: nothing is kept.
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

// Where profiles lie unless a mount says otherwise.
inline constexpr const char* kProfilesFolder = STREAM_PROFILES_FOLDER;

class NameRules {
 public:
  // Those of the profile, or for "" and "default" those of all profiles that hold everywhere; from
  // *.toml in the folder ("": none) and built in. EINVAL for a profile that is not there. What is
  // wrong in a file goes to complaints(), a sentence each, and the rest counts.
  static Result<NameRules> load(const std::string& folder, const std::string& profile);

  // The vStream for a file of that name (empty: it has none) made in a directory of that name by a
  // thread of that name; nullptr where no rule fits.
  const char* match(std::string_view directory, std::string_view name,
                    std::string_view thread) const;

  // RWH_WRITE_LIFE_* that a rule for this vStream expects, of whichever profile; 0: none does.
  uint32_t life_of(const std::string& vstream) const;

  // Whether a profile that is compiled in has a rule for this vStream.
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
