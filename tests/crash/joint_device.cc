#include "tests/crash/joint_device.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/mix.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::joint {
namespace {

constexpr std::byte kNoise{0xdd};

uint64_t hash_of(const std::array<std::byte, kBlockSize>& bytes) {
  uint64_t hash = 0, seen = 0;
  for (size_t at = 0; at < kBlockSize; at += kWordSize) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[at], kWordSize);
    hash = std::rotl((hash ^ word) * 0x9e3779b97f4a7c15, 29);
    seen |= word;
  }
  return seen == 0 ? 0 : mix64(hash);
}

uint64_t term(uint64_t block, const Content* content) {
  return content == nullptr || content->hash == 0 ? 0 : mix64(content->hash + block);
}

}  // namespace

const Content* Contents::add(ConstBytes block) {
  Content& added = all_.emplace_back();
  std::memcpy(added.bytes.data(), block.data(), kBlockSize);
  added.hash = hash_of(added.bytes);
  return &added;
}

const Content* Contents::torn(const Content* from, const Content* rest, uint8_t sectors) {
  Content& made = all_.emplace_back();
  for (uint64_t sector = 0; sector < kBlockSize / kSectorBytes; ++sector) {
    const Content* const source = (sectors >> sector & 1) != 0 ? from : rest;
    std::byte* const to = &made.bytes[sector * kSectorBytes];
    if (source == nullptr)
      std::memset(to, 0, kSectorBytes);
    else
      std::memcpy(to, &source->bytes[sector * kSectorBytes], kSectorBytes);
  }
  made.hash = hash_of(made.bytes);
  return &made;
}

void BlockTable::put(uint64_t block, const Content* content) {
  hash_ ^= term(block, blocks_[block]) ^ term(block, content);
  blocks_[block] = content;
}

MemoryDevice::MemoryDevice(BlockTable& table, Contents& contents)
    : table_(table), contents_(contents) {
  info_.kind = "ram";
  info_.path = "ram";
  info_.identity = "ram-1";
  info_.capacity_blocks = table.size();
}

void MemoryDevice::put(uint64_t block, const Content* content) {
  if (position_) events_.push_back({Event::Kind::kWrite, position_(), block, content});
  table_.put(block, content);
}

void MemoryDevice::call_hook(Event::Kind kind) {
  if (hook_ && hook_kind_ == kind) std::exchange(hook_, nullptr)();
}

void MemoryDevice::write(BlockNo first, ConstBytes bytes, blockdev::WriteTag,
                         blockdev::Completion done) {
  SFS_ASSERT(bytes.size() % kBlockSize == 0);
  SFS_ASSERT(first.value + bytes.size() / kBlockSize <= table_.size());
  call_hook(Event::Kind::kWrite);
  for (uint64_t i = 0; i < bytes.size() / kBlockSize; ++i)
    put(first.value + i, contents_.add(bytes.subspan(i * kBlockSize, kBlockSize)));
  done({});
}

void MemoryDevice::read(BlockNo first, Bytes bytes, blockdev::Completion done) {
  SFS_ASSERT(first.value + bytes.size() / kBlockSize <= table_.size());
  for (uint64_t i = 0; i < bytes.size() / kBlockSize; ++i) {
    const Content* const content = table_.at(first.value + i);
    std::byte* const to = &bytes[i * kBlockSize];
    if (content == nullptr)
      std::memset(to, 0, kBlockSize);
    else
      std::memcpy(to, content->bytes.data(), kBlockSize);
  }
  done({});
}

Result<void> MemoryDevice::flush() {
  call_hook(Event::Kind::kFlush);
  if (position_) events_.push_back({Event::Kind::kFlush, position_()});
  return {};
}

Result<void> MemoryDevice::trim(BlockNo first, uint64_t count) {
  std::array<std::byte, kBlockSize> noise;
  noise.fill(kNoise);
  for (uint64_t i = 0; i < count; ++i) put(first.value + i, contents_.add(noise));
  return {};
}

}  // namespace streamfs::joint
