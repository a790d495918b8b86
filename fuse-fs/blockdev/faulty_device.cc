#include "fuse-fs/blockdev/faulty_device.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::blockdev {
namespace {

constexpr size_t kSector = 512;
constexpr uint64_t kFullWritesMost = 8;
constexpr auto kLate = std::chrono::milliseconds(2);

Result<void> write_now(Device& device, BlockNo first, ConstBytes bytes, WriteTag tag) {
  IoBatch batch(device);
  batch.write(first, bytes, tag);
  return batch.wait();
}

Error injected(const char* what) {
  return {EIO, std::string("injected: ") + what};
}

}  // namespace

FaultyDevice::FaultyDevice(std::unique_ptr<Device> inner, bool volatile_cache)
    : ForwardingDevice(*inner),
      inner_(std::move(inner)),
      info_(inner_->info()),
      volatile_cache_(volatile_cache) {
  if (volatile_cache_) info_.flush_is_free = false;
}

void FaultyDevice::set_faults(const Faults& faults) {
  const MutexLock lock(mutex_);
  faults_ = faults;
}

bool FaultyDevice::due(uint64_t& countdown) {
  if (countdown == Faults::kNever) return false;
  if (countdown > 0) {
    --countdown;
    return false;
  }
  if (faults_.failures == 0) return false;
  if (faults_.failures != Faults::kNever) --faults_.failures;
  ++failed_;
  return true;
}

void FaultyDevice::cache(BlockNo first, ConstBytes bytes, WriteTag tag) {
  for (size_t i = 0; i < bytes.size() / kBlockSize; ++i) {
    Version& version = unflushed_[first.value + i].emplace_back();
    std::memcpy(version.content.data(), bytes.data() + i * kBlockSize, kBlockSize);
    version.tag = tag;
  }
}

void FaultyDevice::set_storm(Storm storm) {
  const MutexLock lock(storm_mutex_);
  weather_.seed(storm.seed);
  writes_without_space_ = 0;
  storm_ = std::move(storm);
}

std::optional<Storm::Kind> FaultyDevice::struck(BlockNo first,
                                                std::initializer_list<Storm::Kind> kinds,
                                                uint64_t& chance) {
  std::function<void(Storm::Kind)> on_fault;
  Storm::Kind kind{};
  {
    const MutexLock lock(storm_mutex_);
    if (storm_.one_in == 0 || first.value < storm_.first_block) return std::nullopt;
    const bool writes = *kinds.begin() == Storm::kWriteError;
    const bool is_full = writes && writes_without_space_ > 0;
    if (!is_full && weather_() % storm_.one_in != 0) return std::nullopt;
    kind = is_full ? Storm::kNoSpace : kinds.begin()[weather_() % kinds.size()];
    chance = weather_();
    if (is_full)
      --writes_without_space_;
    else if (kind == Storm::kNoSpace)
      writes_without_space_ = static_cast<int>(chance % kFullWritesMost);
    on_fault = storm_.on_fault;
  }
  if (on_fault) on_fault(kind);
  if (kind == Storm::kStuck) std::this_thread::sleep_for(kLate);
  return kind;
}

Result<void> FaultyDevice::write_through(BlockNo first, ConstBytes bytes, WriteTag tag) {
  if (volatile_cache_)
    cache(first, bytes, tag);
  else if (!bytes.empty())
    return write_now(*inner_, first, bytes, tag);
  return {};
}

void FaultyDevice::write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) {
  ++writes_;
  uint64_t chance = 0;
  const auto fault = struck(
      first, {Storm::kWriteError, Storm::kNoSpace, Storm::kWriteRefused, Storm::kStuck}, chance);
  const auto perform = [&]() -> Result<void> {
    const MutexLock lock(mutex_);
    if (off_) return injected("no power");
    if (fault == Storm::kNoSpace) return Error{ENOSPC, "injected: write"};
    if (fault == Storm::kWriteRefused) return Error{EAGAIN, "injected: write"};
    const bool fails = due(faults_.fail_writes_after);
    if (fails && faults_.tear_failing_writes)
      bytes = bytes.first(round_down(bytes.size() / 2, kBlockSize));
    else if (fails && !faults_.failing_writes_arrive)
      bytes = {};
    if (fault == Storm::kWriteError)
      bytes = bytes.first(round_down(bytes.size() * (chance % 3) / 2, kBlockSize));
    const Result<void> result = write_through(first, bytes, tag);
    return fails || fault == Storm::kWriteError ? Result<void>(injected("write")) : result;
  };
  done(perform());
}

void FaultyDevice::read(BlockNo first, Bytes bytes, Completion done) {
  uint64_t chance = 0;
  const auto fault = struck(first, {Storm::kReadError, Storm::kStuck}, chance);
  const auto perform = [&]() -> Result<void> {
    const MutexLock lock(mutex_);
    if (off_) return injected("no power");
    if (due(faults_.fail_reads_after)) return injected("read");
    const bool fails = fault == Storm::kReadError;
    if (fails) bytes = bytes.first(round_down(bytes.size() / 2, kBlockSize));
    IoBatch batch(*inner_);
    batch.read(first, bytes);
    SFS_TRY(batch.wait());
    const uint64_t end = first.value + bytes.size() / kBlockSize;
    for (auto at = unflushed_.lower_bound(first.value); at != unflushed_.end() && at->first < end;
         ++at)
      std::memcpy(bytes.data() + (at->first - first.value) * kBlockSize,
                  at->second.back().content.data(), kBlockSize);
    return fails ? Result<void>(injected("read")) : Result<void>();
  };
  done(perform());
}

Result<void> FaultyDevice::flush() {
  ++flushes_;
  const MutexLock lock(mutex_);
  if (off_) return injected("no power");
  if (due(faults_.fail_flushes_after)) {
    if (faults_.lose_on_failed_flush) lose_unflushed(failed_);
    return injected("flush");
  }
  SFS_TRY(write_back());
  return inner_->flush();
}

Result<void> FaultyDevice::write_back() {
  for (const auto& [block, versions] : unflushed_) {
    const Version& last = versions.back();
    if (last.trimmed)
      SFS_TRY(inner_->trim(BlockNo{block}, 1));
    else
      SFS_TRY(write_now(*inner_, BlockNo{block}, last.content, last.tag));
  }
  unflushed_.clear();
  return {};
}

Result<void> FaultyDevice::trim(BlockNo first, uint64_t count) {
  uint64_t chance = 0;
  if (struck(first, {Storm::kTrimError, Storm::kStuck}, chance) == Storm::kTrimError)
    return injected("trim");
  const MutexLock lock(mutex_);
  if (off_) return injected("no power");
  if (!volatile_cache_) return inner_->trim(first, count);
  for (uint64_t block = first.value; block < first.value + count; ++block) {
    Version& version = unflushed_[block].emplace_back();
    version.content.fill(std::byte{0});
    version.trimmed = true;
  }
  return {};
}

void FaultyDevice::choose_content(uint64_t block, const std::vector<Version>& versions,
                                  uint64_t choice) {
  std::mt19937_64 random(choice);
  Block content;
  IoBatch batch(*inner_);
  batch.read(BlockNo{block}, content);
  SFS_ASSERT(batch.wait().ok());
  // Mostly whole versions, as devices do; now and then a mix of sectors. A trim alone never tears.
  const bool written = std::ranges::any_of(versions, [](const Version& v) { return !v.trimmed; });
  const bool torn = written && random() % 4 == 0;
  size_t pick = random() % (versions.size() + 1);
  for (size_t at = 0; at < kBlockSize; at += kSector) {
    if (torn) pick = random() % (versions.size() + 1);
    if (pick > 0) std::memcpy(&content[at], &versions[pick - 1].content[at], kSector);
  }
  SFS_ASSERT(write_now(*inner_, BlockNo{block}, content, versions.back().tag).ok());
}

void FaultyDevice::lose_unflushed(uint64_t seed) {
  std::mt19937_64 random(seed);
  for (const auto& [block, versions] : unflushed_) choose_content(block, versions, random());
  unflushed_.clear();
}

void FaultyDevice::power_cut(uint64_t seed) {
  const MutexLock lock(mutex_);
  lose_unflushed(seed);
  off_ = true;
}

void FaultyDevice::power_on() {
  const MutexLock lock(mutex_);
  off_ = false;
  faults_ = {};
}

}  // namespace streamfs::blockdev
