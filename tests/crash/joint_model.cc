#include "tests/crash/joint_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <vector>

#include "base/mix.h"
#include "base/types.h"
#include "tests/crash/joint_device.h"

namespace streamfs::joint {
namespace model {

bool same_names(const FoundFiles& found, const std::map<std::string, size_t>& names) {
  return std::ranges::equal(found | std::views::keys, names | std::views::keys);
}

}  // namespace model

void Model::create(const std::string& name) {
  next_names_[name] = files_.size();
  files_.push_back({{{call(), 0}}, {}, {}});
}

void Model::rename(const std::string& from, const std::string& to) {
  if (has(to)) file(from).promises.push_back({call(), true});  // its data is committed first
  next_names_[to] = next_names_.at(from);
  next_names_.erase(from);
}

void Model::set(File& file, uint64_t sector, int value) {
  while (file.sectors.size() <= sector) file.sectors.push_back({{0, 0}});
  file.sectors[sector].push_back({call(), static_cast<uint64_t>(value)});
}

void Model::write(const std::string& name, uint64_t offset, uint64_t length, int value) {
  File& to = file(name);
  for (uint64_t at = offset / kSectorBytes; at < (offset + length) / kSectorBytes; ++at)
    set(to, at, value);
  to.sizes.push_back({call(), std::max(to.sizes.back().value, offset + length)});
}

void Model::truncate(const std::string& name, uint64_t size) {
  File& to = file(name);
  for (uint64_t at = size / kSectorBytes; at < to.sectors.size(); ++at) set(to, at, 0);
  to.sizes.push_back({call(), size});
}

void Model::zero(const std::string& name, uint64_t offset, uint64_t length) {
  File& to = file(name);
  const uint64_t end = std::min(offset + length, to.sizes.back().value);
  for (uint64_t at = offset / kSectorBytes; at < end / kSectorBytes; ++at) set(to, at, 0);
}

void Model::promise_without_meta() {
  promised_all_.push_back(call());
  promised_without_meta_.push_back(call());
}

void Model::end_call() {
  names_.push_back(next_names_);
}

uint64_t Model::fingerprint(size_t calls) const {
  uint64_t hash = calls;
  const auto add = [&](uint64_t value) { hash = mix64(hash * 31 + value); };
  const size_t last = std::min(calls + 1, this->calls());
  for (const size_t at : {calls, last}) {
    for (const auto& [name, index] : names_[at]) {
      for (const char c : name) add(static_cast<uint64_t>(c));
      add(index);
    }
  }
  for (const size_t each : promised_all_) add(std::min(each, last + 1));
  for (const size_t each : promised_without_meta_) add(std::min(each, last + 1));
  const auto add_history = [&](const History& history) {
    for (const Value& each : history)
      if (each.call <= last) add(each.call * 1000003 + each.value);
  };
  for (const File& each : files_) {
    add(each.promises.size());
    for (const Promise& promise : each.promises) add(std::min(promise.call, last + 1));
    add_history(each.sizes);
    for (const History& history : each.sectors) add_history(history);
  }
  return hash;
}

// Returns the last call up to `at` and before `before` that changed names, or 0.
size_t Model::last_change(size_t at, size_t before) const {
  for (size_t each = std::min(at, before - 1); each > 0; --each)
    if (names_[each] != names_[each - 1]) return each;
  return 0;
}

// Returns the newest call whose effect is found, if the names are those after call `at`.
size_t Model::evidence(const FoundFiles& found, size_t at) const {
  size_t newest = last_change(at, at + 1);
  const auto see = [&](const History& history, uint64_t value) {
    const auto first = std::ranges::find(history, value, &Value::value);
    if (first != history.end()) newest = std::max(newest, first->call);
  };
  for (const auto& [name, content] : found) {
    const File& file = files_[names_[at].at(name)];
    see(file.sizes, content.size);
    const size_t known = std::min(content.sectors.size(), file.sectors.size());
    for (size_t i = 0; i < known; ++i)
      see(file.sectors[i], static_cast<uint64_t>(content.sectors[i]));
  }
  return newest;
}

// Returns the last call up to `until` that promised the file, or 0.
size_t Model::promised(const File& file, size_t until, size_t renamed_until) const {
  size_t last = 0;
  for (const size_t each : promised_all_)
    if (each <= until) last = std::max(last, each);
  for (const Promise& each : file.promises)
    if (each.call <= (each.by_rename ? renamed_until : until)) last = std::max(last, each.call);
  return last;
}

// Checks one file. A value is allowed if the file had it at call `floor`, or if a later call set
// it, up to the call that the cut interrupted.
std::string Model::check_file(const FoundFile& found, const File& file, size_t floor,
                              size_t calls) {
  const auto allowed = [&](const History& history, uint64_t value) {
    for (auto each = history.rbegin(); each != history.rend(); ++each) {
      if (each->call <= calls + 1 && each->value == value) return true;
      if (each->call <= floor) return false;
    }
    return value == 0;
  };
  if (!allowed(file.sizes, found.size)) return "the size is " + std::to_string(found.size);
  for (size_t i = 0; i < found.sectors.size(); ++i) {
    static const History kZero{{0, 0}};
    const History& history = i < file.sectors.size() ? file.sectors[i] : kZero;
    const int value = found.sectors[i];
    if (value != kMixed && allowed(history, static_cast<uint64_t>(value))) continue;
    return "sector " + std::to_string(i) + " has " + std::to_string(value) + " instead of " +
           std::to_string(history.back().value);
  }
  return {};
}

// Checks the files on the assumption that the names are those after call `at`. If META is lost,
// these promises hold: everything up to the last promise_without_meta(), and each fsync and sync
// older than the newest call whose effect is found.
std::string Model::check_at(const FoundFiles& found, size_t calls, Meta meta, size_t at) const {
  size_t until = at;  // promises up to here hold
  if (meta == Meta::kLost) {
    size_t home = 0;
    for (const size_t each : promised_without_meta_)
      if (each <= calls) home = each;
    const size_t newest = evidence(found, at);
    size_t last_promise = 0;
    const auto see = [&](size_t promise) {
      if (promise < newest) last_promise = std::max(last_promise, promise);
    };
    for (const size_t each : promised_all_) see(each);
    for (const File& file : files_)
      for (const Promise& promise : file.promises)
        if (!promise.by_rename) see(promise.call);
    until = std::max(home, last_promise);
    if (last_change(names_.size() - 1, until + 1) > at) return "names are older than a promise";
  }
  for (const auto& [name, content] : found) {
    const File& file = files_[names_[at].at(name)];
    const size_t renamed = std::max(until, last_change(at, at + 1));
    std::string wrong = check_file(content, file, promised(file, until, renamed), calls);
    if (!wrong.empty()) return name + ": " + wrong;
  }
  return {};
}

std::string Model::check(const FoundFiles& found, size_t calls, Meta meta) const {
  std::string wrong = "no such names:";
  for (const auto& [name, file] : found) wrong += " " + name;
  const size_t first = meta == Meta::kKept ? calls : 0;
  for (size_t at = std::min(calls + 1, this->calls());; --at) {
    if (model::same_names(found, names_[at])) {
      wrong = check_at(found, calls, meta, at);
      if (wrong.empty()) return {};
    }
    if (at == first) return wrong;
  }
}

}  // namespace streamfs::joint
