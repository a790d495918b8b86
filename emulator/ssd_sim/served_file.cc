#include "emulator/ssd_sim/served_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "emulator/geometry.h"

namespace streamfs::emulator::ssd_sim {

Result<std::vector<std::byte>> ServedFile::read(uint64_t offset, uint64_t length) {
  if (offset >= size()) return std::vector<std::byte>();
  length = std::min(length, size() - offset);
  const uint64_t first = offset / kPageBytes;
  const uint64_t pages = div_round_up(offset + length, kPageBytes) - first;
  std::vector<std::byte> bytes(pages * kPageBytes);
  SFS_TRY(ssd_.read(first, bytes));
  if (offset % kPageBytes != 0)
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(offset % kPageBytes));
  bytes.resize(length);
  return bytes;
}

Result<void> ServedFile::write_part(uint64_t offset, ConstBytes bytes) {
  std::array<std::byte, kPageBytes> page;
  const uint64_t at = offset % kPageBytes;
  SFS_ASSERT(at + bytes.size() <= kPageBytes);
  const WriteLock lock(partial_);
  SFS_TRY(ssd_.read(offset / kPageBytes, page));
  std::memcpy(page.data() + at, bytes.data(), bytes.size());
  return ssd_.write(offset / kPageBytes, page, {}, {});
}

Result<void> ServedFile::write(uint64_t offset, ConstBytes bytes) {
  if (offset > size() || bytes.size() > size() - offset)
    return Error{ENOSPC, "beyond the end of the emulated SSD"};
  if (const uint64_t within = offset % kPageBytes; within != 0 || bytes.size() < kPageBytes) {
    const uint64_t head = std::min<uint64_t>(bytes.size(), kPageBytes - within);
    if (head > 0) SFS_TRY(write_part(offset, bytes.first(head)));
    offset += head;
    bytes = bytes.subspan(head);
  }
  if (const uint64_t whole = round_down(bytes.size(), kPageBytes); whole > 0) {
    const ReadLock lock(partial_);
    SFS_TRY(ssd_.write(offset / kPageBytes, bytes.first(whole), {}, {}));
    offset += whole;
    bytes = bytes.subspan(whole);
  }
  return bytes.empty() ? Result<void>() : write_part(offset, bytes);
}

Result<void> ServedFile::zero(uint64_t offset, uint64_t length) {
  static constexpr std::array<std::byte, kPageBytes * kMaxMapUnitPages> kZeroes{};
  return length == 0 ? Result<void>() : write(offset, ConstBytes(kZeroes).first(length));
}

Result<void> ServedFile::punch(uint64_t offset, uint64_t length) {
  if (offset >= size()) return {};
  const uint64_t end = std::min(size(), length > size() - offset ? size() : offset + length);
  const uint64_t unit = ssd_.geometry().map_unit_pages * kPageBytes;
  const uint64_t first = round_up(offset, unit), last = round_down(end, unit);
  if (first > last) return zero(offset, end - offset);
  SFS_TRY(zero(offset, first - offset));
  SFS_TRY(zero(last, end - last));
  if (first == last) return {};
  const ReadLock lock(partial_);
  return ssd_.trim(first / kPageBytes, (last - first) / kPageBytes);
}

}  // namespace streamfs::emulator::ssd_sim
