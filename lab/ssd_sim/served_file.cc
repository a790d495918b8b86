#include "lab/ssd_sim/served_file.h"

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
#include "ssd/geometry.h"
#include "ssd/idle_worker.h"
#include "ssd/real_time.h"

namespace streamfs::lab::ssd_sim {

Result<std::vector<std::byte>> ServedFile::read(uint64_t offset, uint64_t length) {
  if (offset >= size()) return std::vector<std::byte>();
  length = std::min(length, size() - offset);
  const uint64_t first = offset / ssd::kPageBytes;
  const uint64_t pages = div_round_up(offset + length, ssd::kPageBytes) - first;
  std::vector<std::byte> bytes(pages * ssd::kPageBytes);
  const ssd::IdleWorker::Request request(idle_);
  ssd::Acknowledgement done;
  SFS_TRY(ssd_.read(first, bytes, &done));
  done.wait();
  if (offset % ssd::kPageBytes != 0)
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(offset % ssd::kPageBytes));
  bytes.resize(length);
  return bytes;
}

Result<void> ServedFile::write_part(uint64_t offset, ConstBytes bytes, ssd::Acknowledgement& done) {
  std::array<std::byte, ssd::kPageBytes> page;
  const uint64_t at = offset % ssd::kPageBytes;
  SFS_ASSERT(at + bytes.size() <= ssd::kPageBytes);
  const WriteLock lock(partial_);
  SFS_TRY(ssd_.read(offset / ssd::kPageBytes, page, &done));
  std::memcpy(page.data() + at, bytes.data(), bytes.size());
  return ssd_.write(offset / ssd::kPageBytes, page, {}, {}, &done);
}

Result<void> ServedFile::write(uint64_t offset, ConstBytes bytes) {
  const ssd::IdleWorker::Request request(idle_);
  ssd::Acknowledgement done;
  SFS_TRY(write_now(offset, bytes, done));
  done.wait();
  return {};
}

Result<void> ServedFile::write_now(uint64_t offset, ConstBytes bytes, ssd::Acknowledgement& done) {
  if (offset > size() || bytes.size() > size() - offset)
    return Error{ENOSPC, "beyond the end of the emulated SSD"};
  if (const uint64_t within = offset % ssd::kPageBytes;
      within != 0 || bytes.size() < ssd::kPageBytes) {
    const uint64_t head = std::min<uint64_t>(bytes.size(), ssd::kPageBytes - within);
    if (head > 0) SFS_TRY(write_part(offset, bytes.first(head), done));
    offset += head;
    bytes = bytes.subspan(head);
  }
  if (const uint64_t whole = round_down(bytes.size(), ssd::kPageBytes); whole > 0) {
    const ReadLock lock(partial_);
    SFS_TRY(ssd_.write(offset / ssd::kPageBytes, bytes.first(whole), {}, {}, &done));
    offset += whole;
    bytes = bytes.subspan(whole);
  }
  return bytes.empty() ? Result<void>() : write_part(offset, bytes, done);
}

Result<void> ServedFile::flush() {
  const ssd::IdleWorker::Request request(idle_);
  ssd::Acknowledgement done;
  SFS_TRY(ssd_.flush(&done));
  done.wait();
  return {};
}

// Zeroes a part of one map unit. If the part is zero already it is not written again, and a unit of
// zeroes is trimmed. Discards that come in pieces therefore free the unit in the end.
Result<void> ServedFile::zero_part(uint64_t offset, uint64_t length, ssd::Acknowledgement& done) {
  const uint64_t start = round_down(offset, map_unit_bytes());
  std::vector<std::byte> unit(std::min(map_unit_bytes(), size() - start));
  const Bytes part = Bytes(unit).subspan(offset - start, length);
  const auto zero = [](ConstBytes bytes) {
    return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
  };
  const WriteLock lock(partial_);
  SFS_TRY(ssd_.read(start / ssd::kPageBytes, unit, &done));
  const bool empty = zero(part);
  std::memset(part.data(), 0, part.size());
  if (zero(unit)) return ssd_.trim(start / ssd::kPageBytes, unit.size() / ssd::kPageBytes);
  if (empty) return {};
  const uint64_t first = round_down(offset, ssd::kPageBytes) - start;
  const uint64_t end = round_up(offset + length, ssd::kPageBytes) - start;
  return ssd_.write((start + first) / ssd::kPageBytes, Bytes(unit).subspan(first, end - first), {},
                    {}, &done);
}

Result<void> ServedFile::punch(uint64_t offset, uint64_t length) {
  if (offset >= size()) return {};
  const ssd::IdleWorker::Request request(idle_);
  ssd::Acknowledgement done;
  SFS_TRY(punch_now(offset, std::min(length, size() - offset), done));
  done.wait();
  return {};
}

Result<void> ServedFile::punch_now(uint64_t offset, uint64_t length, ssd::Acknowledgement& done) {
  const uint64_t end = offset + length;
  const uint64_t first = round_up(offset, map_unit_bytes());
  const uint64_t last = round_down(end, map_unit_bytes());
  if (first > last) return zero_part(offset, length, done);
  if (offset < first) SFS_TRY(zero_part(offset, first - offset, done));
  if (last < end) SFS_TRY(zero_part(last, end - last, done));
  if (first == last) return {};
  const ReadLock lock(partial_);
  return ssd_.trim(first / ssd::kPageBytes, (last - first) / ssd::kPageBytes);
}

}  // namespace streamfs::lab::ssd_sim
