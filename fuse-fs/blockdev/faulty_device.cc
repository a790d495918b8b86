#include "fuse-fs/blockdev/faulty_device.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::blockdev {
namespace {

constexpr size_t kSector = 512;

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
    : inner_(std::move(inner)), info_(inner_->info()), volatile_cache_(volatile_cache) {
  if (volatile_cache_) info_.flush_is_free = false;
}

void FaultyDevice::set_faults(const Faults& faults) {
  const MutexLock lock(mutex_);
  faults_ = faults;
}

bool FaultyDevice::due(uint64_t& countdown) {
  if (countdown == 0) return true;
  if (countdown != Faults::kNever) --countdown;
  return false;
}

void FaultyDevice::cache(BlockNo first, ConstBytes bytes, WriteTag tag) {
  for (size_t i = 0; i < bytes.size() / kBlockSize; ++i) {
    Version& version = unflushed_[first.value + i].emplace_back();
    std::memcpy(version.content.data(), bytes.data() + i * kBlockSize, kBlockSize);
    version.tag = tag;
  }
}

void FaultyDevice::write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) {
  const auto perform = [&]() -> Result<void> {
    const MutexLock lock(mutex_);
    if (off_) return injected("no power");
    const bool fails = due(faults_.fail_writes_after);
    if (fails && faults_.tear_failing_writes)
      bytes = bytes.first(round_down(bytes.size() / 2, kBlockSize));
    else if (fails)
      bytes = {};
    Result<void> result;
    if (volatile_cache_)
      cache(first, bytes, tag);
    else if (!bytes.empty())
      result = write_now(*inner_, first, bytes, tag);
    return fails ? Result<void>(injected("write")) : result;
  };
  done(perform());
}

void FaultyDevice::read(BlockNo first, Bytes bytes, Completion done) {
  const auto perform = [&]() -> Result<void> {
    const MutexLock lock(mutex_);
    if (off_) return injected("no power");
    if (due(faults_.fail_reads_after)) return injected("read");
    IoBatch batch(*inner_);
    batch.read(first, bytes);
    SFS_TRY(batch.wait());
    const uint64_t end = first.value + bytes.size() / kBlockSize;
    for (auto at = unflushed_.lower_bound(first.value); at != unflushed_.end() && at->first < end;
         ++at)
      std::memcpy(bytes.data() + (at->first - first.value) * kBlockSize,
                  at->second.back().content.data(), kBlockSize);
    return {};
  };
  done(perform());
}

Result<void> FaultyDevice::flush() {
  const MutexLock lock(mutex_);
  if (off_) return injected("no power");
  if (due(faults_.fail_flushes_after)) return injected("flush");
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

void FaultyDevice::settle(uint64_t block, const std::vector<Version>& versions, uint64_t choice) {
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

void FaultyDevice::power_cut(uint64_t seed) {
  const MutexLock lock(mutex_);
  std::mt19937_64 random(seed);
  for (const auto& [block, versions] : unflushed_) settle(block, versions, random());
  unflushed_.clear();
  off_ = true;
}

void FaultyDevice::power_on() {
  const MutexLock lock(mutex_);
  off_ = false;
  faults_ = {};
}

}  // namespace streamfs::blockdev
