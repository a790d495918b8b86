#include "fuse-fs/frontend/savings.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::frontend {
namespace {

using nlohmann::json;

constexpr uint64_t kMost = uint64_t{1} << 62;  // of any figure, so that a sum of two still fits

Error wrong(const std::string& what) {
  return Error{EINVAL, "savings: " + what};
}

Result<uint64_t> count(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned() || found->get<uint64_t>() > kMost)
    return wrong(std::string("\"") + key + "\" is no number of this kind");
  return found->get<uint64_t>();
}

// Returns a saving, which may be negative: streams may also cost something.
Result<int64_t> difference(const json& object, const char* key) {
  const auto found = object.find(key);
  const bool whole = found != object.end() && found->is_number_integer();
  const bool fits = whole && (found->is_number_unsigned()
                                  ? found->get<uint64_t>() <= kMost
                                  : found->get<int64_t>() >= -static_cast<int64_t>(kMost));
  if (!fits) return wrong(std::string("\"") + key + "\" is no number of this kind");
  return found->get<int64_t>();
}

// Returns the known fields of a period, and drops the others.
Result<json> period(const json& told, const char* name) {
  const auto found = told.find(name);
  if (found == told.end() || !found->is_object())
    return wrong(std::string("\"") + name + "\" is missing");
  json out;
  for (const char* key :
       {"since_ms", "written_bytes", "nand_off_bytes", "nand_placed_bytes", "nand_oracle_bytes"}) {
    SFS_ASSIGN(const uint64_t value, count(*found, key));
    out[key] = value;
  }
  std::array<int64_t, 3> saved{};
  constexpr std::array<const char*, 3> kSaved = {"saved_low_bytes", "saved_bytes",
                                                 "saved_high_bytes"};
  for (size_t i = 0; i < saved.size(); ++i) {
    SFS_ASSIGN(saved[i], difference(*found, kSaved[i]));
    out[kSaved[i]] = saved[i];
  }
  if (saved[0] > saved[1] || saved[1] > saved[2]) return wrong("limits are the wrong way round");
  return out;
}

Result<json> moments(const json& told) {
  const json rows = told.value("history", json::array());
  if (!rows.is_array() || rows.size() > Savings::kMomentsMax)
    return wrong("\"history\" is a list, not too long");
  uint64_t last = 0;
  for (const json& row : rows) {
    const bool sound = row.is_array() && row.size() == Savings::kMomentFigures &&
                       std::ranges::all_of(row, [](const json& each) {
                         return each.is_number_unsigned() && each.get<uint64_t>() <= kMost;
                       });
    if (!sound || row.at(0).get<uint64_t>() < last) return wrong("a moment that cannot be");
    last = row.at(0).get<uint64_t>();
  }
  return rows;
}

}  // namespace

Result<void> Savings::take(const json& told, int64_t now_ms) {
  if (!told.is_object()) return wrong("\"report\" is an object");
  SFS_ASSIGN(const uint64_t version, count(told, "version"));
  if (version != kVersion) return wrong("of version " + std::to_string(version));
  json kept = {{"version", version}, {"told_ms", now_ms}};
  SFS_ASSIGN(const uint64_t one_in, count(told, "one_in"));
  if (one_in == 0) return wrong("\"one_in\" is 1 at least");
  kept["one_in"] = one_in;
  for (const char* each : {"all", "month"}) {
    SFS_ASSIGN(kept[each], period(told, each));
  }
  SFS_ASSIGN(json history, moments(told));
  const MutexLock lock(mutex_);
  told_ = std::move(kept);
  history_ = std::move(history);
  return {};
}

json Savings::now() const {
  const MutexLock lock(mutex_);
  return told_;
}

json Savings::history() const {
  const MutexLock lock(mutex_);
  return history_;
}

}  // namespace streamfs::frontend
