#include "tests/faults/sweep_workload.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::data {
namespace {

constexpr size_t kSector = 512;

}  // namespace

std::vector<std::byte> SweepWorkload::content(uint64_t seed) {
  std::vector<std::byte> bytes(2 * kBlockSize + seed % 5 * 600);
  std::mt19937_64 random(seed);
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(&bytes[at], &word, sizeof word);
  }
  return bytes;
}

// Like a lookup of the kernel that is forgotten at once.
std::optional<InodeId> SweepWorkload::find(const std::string& name) const {
  const auto found = rig_.fs().lookup(rig_.fs().root(), name);
  if (!found.ok()) return std::nullopt;
  rig_.fs().forget(found->id, 1);
  return found->id;
}

bool SweepWorkload::make(const std::string& name) {
  const auto made = rig_.fs().create(rig_.fs().root(), name, 0100644, 0, {}, {});
  if (made.ok()) rig_.fs().forget(made->id, 1);
  return made.ok();
}

bool SweepWorkload::write_and_sync(const std::string& name, uint64_t seed) {
  const std::optional<InodeId> id = find(name);
  return id && rig_.write(*id, 0, content(seed)).ok() &&
         rig_.fs().truncate(*id, content(seed).size()).ok() && rig_.fs().fsync(*id, false).ok();
}

bool SweepWorkload::recreate(const std::string& name, uint64_t seed) {
  (void)rig_.fs().unlink(rig_.fs().root(), name);
  return make(name) && write_and_sync(name, seed);
}

bool SweepWorkload::replace(const std::string& name, uint64_t seed) {
  const InodeId root = rig_.fs().root();
  return recreate("new", seed) && rig_.fs().rename(root, "new", root, name, 0, {}).ok() &&
         rig_.fs().sync().ok();
}

void SweepWorkload::step() {
  const uint64_t seed = ++steps_, number = seed % kFiles;
  File& file = files_[number];
  file.attempted.insert(seed);
  const uint64_t kind = (seed / kFiles + number) % 4;
  const std::string name = name_of(number);
  const bool done = !file.promised || kind < 2 ? recreate(name, seed)
                    : kind == 2                ? write_and_sync(name, seed)
                                               : replace(name, seed);
  rig_.clock().ms += 10;
  if (seed % 16 == 0) {
    rig_.fs().maintenance().timer_round();
    rig_.fs().maintenance().reclaim_round();
  }
  if (done) file = {seed, {}};
}

void SweepWorkload::let_time_pass() {
  for (int second = 0; second < 60; ++second) {
    rig_.clock().ms += 1000;
    rig_.fs().maintenance().timer_round();
    rig_.fs().maintenance().reclaim_round();
  }
}

// Every sector is from some content that the file was given, or zero.
bool SweepWorkload::may_hold(const File& file, const std::vector<std::byte>& bytes) const {
  std::vector<std::vector<std::byte>> contents;
  if (file.promised) contents.push_back(content(*file.promised));
  for (const uint64_t seed : file.attempted) contents.push_back(content(seed));
  for (size_t at = 0; at < bytes.size(); at += kSector) {
    const size_t length = std::min(kSector, bytes.size() - at);
    const auto sector = std::vector<std::byte>(&bytes[at], &bytes[at] + length);
    const bool is_zero = std::ranges::all_of(sector, [](std::byte b) { return b == std::byte{0}; });
    const bool is_ours = std::ranges::any_of(contents, [&](const auto& each) {
      // A write may have been cut at any byte of its last sector.
      std::vector<std::byte> expected(length);
      if (at < each.size())
        std::memcpy(expected.data(), &each[at], std::min(length, each.size() - at));
      return expected == sector;
    });
    if (!is_zero && !is_ours) return false;
  }
  return true;
}

std::optional<std::string> SweepWorkload::fault_of(uint64_t number) const {
  const File& file = files_[number];
  const bool is_certain = file.attempted.empty();
  const std::optional<InodeId> id = find(name_of(number));
  if (!id) return is_certain ? std::optional<std::string>("is not there") : std::nullopt;
  std::vector<std::byte> bytes(4 * kBlockSize);
  const Result<size_t> got = rig_.fs().read(*id, 0, bytes);
  if (!got.ok()) return is_certain ? std::optional("read: " + got.error().message()) : std::nullopt;
  bytes.resize(*got);
  if (is_certain && bytes != content(*file.promised)) return "content";
  if (!is_certain && !may_hold(file, bytes)) return "foreign bytes";
  return std::nullopt;
}

SweepWorkload::Found SweepWorkload::check() const {
  Found out;
  for (uint64_t number = 0; number < kFiles; ++number) {
    const File& file = files_[number];
    if (!file.promised && file.attempted.empty()) continue;
    out.files += file.attempted.empty() ? 1 : 0;
    if (const auto fault = fault_of(number)) out.lost.push_back(name_of(number) + ": " + *fault);
  }
  return out;
}

}  // namespace streamfs::data
