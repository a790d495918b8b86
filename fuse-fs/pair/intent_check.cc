#include "fuse-fs/pair/intent_check.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::pair {
namespace {

using meta::IntentLog;

class IntentCheck {
 public:
  // `pages_lost`: pages of META that could not be read when the log was opened.
  IntentCheck(OpenPair& pair, const meta::Geometry& geometry, IntentLog& log, uint64_t pages_lost)
      : region_(*pair.region),
        device_(*pair.device),
        geometry_(geometry),
        log_(log),
        damage_(log.damage()),
        pages_lost_(pages_lost) {}

  void look();
  Result<void> repair(IntentRepair how);
  IntentReport report();

 private:
  using Entries = std::vector<IntentLog::Found>;  // of one block, by sequence

  // Returns the checksum that META has of a block; nullopt: none.
  std::optional<uint32_t> checksum_of(BlockNo block) const;
  bool data_has(BlockNo block, uint32_t checksum);
  const IntentLog::Found* with_content(const Entries& entries, uint32_t checksum);
  void look_at(const Entries& entries);
  bool write(const IntentLog::Found& found);
  bool damaged() const {
    return damage_.any() || behind_ > 0 || not_whole_ > 0 || !unproven_.empty();
  }
  std::string damage_text() const;

  pmem::Region& region_;
  blockdev::Device& device_;
  const meta::Geometry& geometry_;
  IntentLog& log_;
  const IntentLog::Damage damage_;
  IntentReport report_;
  std::vector<IntentLog::Found> home_;     // blocks to be written to DATA
  uint64_t not_whole_ = 0;                 // blocks of damaged entries that DATA does not have
  uint64_t behind_ = 0;                    // blocks whose entries lie behind a damaged one
  std::map<uint64_t, uint64_t> lost_;      // blocks, by inode
  std::map<uint64_t, uint64_t> unproven_;  // the same, of blocks that no checksum can tell
  uint64_t pages_lost_;                    // of META, found by reads of the log
  bool repaired_ = false;
  blockdev::BlockBuffer buffer_;
};

std::optional<uint32_t> IntentCheck::checksum_of(BlockNo block) const {
  if (!geometry_.checksums()) return std::nullopt;
  const uint64_t at = geometry_.checksum_offset(block);
  const uint64_t word = region_.load(round_down(at, kWordSize));
  const auto stored = static_cast<uint32_t>(word >> at % kWordSize * 8);
  return stored == 0 ? std::nullopt : std::optional(stored);
}

bool IntentCheck::data_has(BlockNo block, uint32_t checksum) {
  blockdev::BlockBuffer there;
  blockdev::IoBatch batch(device_);
  batch.read(block, there.bytes);
  return batch.wait().ok() && meta::known_checksum(crc32c(there.bytes)) == checksum;
}

// Returns the newest entry with the content that META has the checksum of; null: there is none.
const IntentLog::Found* IntentCheck::with_content(const Entries& entries, uint32_t checksum) {
  for (const IntentLog::Found& each : std::views::reverse(entries)) {
    if (each.unreadable) continue;
    log_.read(each.place, buffer_.bytes);
    if (meta::known_checksum(crc32c(buffer_.bytes)) == checksum) return &each;
  }
  return nullptr;
}

// Decides which entry of a block is right. If META has a checksum of the block, the checksum
// decides, because counting does not suffice. An entry that does not count is stale or belongs to a
// failed fsync, but behind a damaged entry it may be the newest content. An entry that counts may
// be stale if a slot of the expired word is damaged. Without a checksum the newest counting entry
// is right, unless a newer entry is damaged.
void IntentCheck::look_at(const Entries& entries) {
  const IntentLog::Found* counting = nullptr;  // the newest
  for (const IntentLog::Found& each : entries) counting = each.counts ? &each : counting;
  report_.blocks += counting != nullptr ? 1 : 0;
  const std::optional<uint32_t> stored = checksum_of(entries.front().block);
  if (!stored) {
    if (counting != nullptr && !counting->unreadable) home_.push_back(*counting);
    if (counting != &entries.back() || counting->unreadable)
      ++unproven_[entries.back().inode.value];
    return;
  }
  const bool on_data = data_has(entries.front().block, *stored);
  const IntentLog::Found* const right = with_content(entries, *stored);
  if (right != nullptr && (right->counts || !on_data)) {
    home_.push_back(*right);
    behind_ += right->counts ? 0 : 1;
  } else if (!on_data) {
    ++lost_[entries.back().inode.value];
    ++not_whole_;
  }
}

void IntentCheck::look() {
  std::map<uint64_t, Entries> blocks;
  std::set<uint64_t> inodes;
  for (const IntentLog::Found& each : log_.entries()) {
    blocks[each.block.value].push_back(each);
    if (each.counts) inodes.insert(each.inode.value);
  }
  const uint64_t before = region_.lost();
  for (const auto& [block, entries] : blocks) look_at(entries);
  pages_lost_ += region_.lost() - before;
  report_.files = inodes.size();
  report_.entries = log_.entries_found();
}

bool IntentCheck::write(const IntentLog::Found& found) {
  log_.read(found.place, buffer_.bytes);
  blockdev::IoBatch batch(device_);
  batch.write(found.block, buffer_.bytes, {});
  return batch.wait().ok();
}

// The log is emptied last: until then a cut loses nothing that it holds.
Result<void> IntentCheck::repair(IntentRepair how) {
  if (how == IntentRepair::kNone || region_.lost() > 0) return {};
  for (const IntentLog::Found& found : home_) {
    if (write(found)) {
      ++report_.written_blocks;
    } else {
      ++lost_[found.inode.value];
    }
  }
  SFS_TRY(device_.flush());
  const bool loses = !lost_.empty() || !unproven_.empty();
  if (loses && how == IntentRepair::kWithoutLoss) return {};
  if (damaged()) {
    log_.reset();
  } else if (report_.entries > 0) {
    log_.start();
  }
  repaired_ = true;
  return region_.sync();
}

std::string IntentCheck::damage_text() const {
  std::string text = "the intent log is damaged:";
  if (damage_.expired_word) text += " the expired word in both of its slots;";
  if (damage_.baseless > 0)
    text += fmt::format(" {} entries build on entries that are gone;", damage_.baseless);
  if (behind_ > 0)
    text += fmt::format(" {} blocks that DATA lacks are in entries behind damage;", behind_);
  if (not_whole_ > 0)
    text += fmt::format(" the entries of {} blocks that DATA lacks are damaged;", not_whole_);
  if (!unproven_.empty()) text += " entries of blocks without a checksum are damaged;";
  text.back() = '.';
  return text;
}

IntentReport IntentCheck::report() {
  if (pages_lost_ > 0)
    report_.problems.push_back({"pages of META that hold the intent log cannot be read", false});
  if (damaged()) report_.problems.push_back({damage_text(), repaired_});
  for (const auto& [inode, blocks] : lost_) {
    report_.lost_blocks += blocks;
    const char* const reads = geometry_.checksums() ? "reading them gives EIO"
                                                    : "they read as what DATA has in their place";
    report_.problems.push_back(
        {fmt::format("inode {}: fsync'd data of the intent log is lost ({} blocks); {}", inode,
                     blocks, reads),
         repaired_});
  }
  for (const auto& [inode, blocks] : unproven_) {
    report_.problems.push_back(
        {fmt::format(
             "inode {}: fsync'd data of the intent log may be lost ({} blocks); no checksum "
             "tells",
             inode, blocks),
         repaired_});
  }
  return report_;
}

}  // namespace

Result<IntentReport> check_intent_log(OpenPair& pair, IntentRepair how) {
  SFS_ASSIGN(const meta::Geometry geometry, meta::Geometry::from(pair.super));
  if (geometry.intent_segments() == 0) return IntentReport{};
  const uint64_t lost = pair.region->lost();
  SFS_ASSIGN(const auto log, IntentLog::salvage(*pair.region, geometry));
  IntentCheck check(pair, geometry, *log, pair.region->lost() - lost);
  check.look();
  SFS_TRY(check.repair(how));
  return check.report();
}

}  // namespace streamfs::pair
