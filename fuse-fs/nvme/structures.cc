#include "fuse-fs/nvme/structures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/fields.h"

namespace streamfs::nvme {
namespace {

constexpr size_t kConfigurationsHeader = 16, kConfigurationHeader = 64, kHandleBytes = 4;
constexpr size_t kRuhCountAt = 14;
constexpr uint8_t kPageBits = 12;

Error too_short(const char* what) {
  return {EIO, fmt::format("the controller's {} does not fit its length", what)};
}

template <typename T>
void append(std::vector<std::byte>& to, const T& value) {
  const std::vector<std::byte> bytes = encode(value);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// `count` structures, beginning at `at`; all of them must be there.
template <typename T>
std::vector<T> decode_all(ConstBytes bytes, size_t at, size_t count) {
  std::vector<T> all;
  for (size_t i = 0; i < count; ++i) all.push_back(decode<T>(bytes.subspan(at + i * T::kBytes)));
  return all;
}

bool fits(ConstBytes bytes, size_t header, size_t count, size_t each) {
  return bytes.size() >= header && (bytes.size() - header) / each >= count;
}

}  // namespace

uint64_t ControllerIdentity::max_transfer_bytes() const {
  if (mdts == 0 || mdts + kPageBits >= 64) return std::numeric_limits<uint64_t>::max();
  return uint64_t{1} << (kPageBits + mdts);
}

uint32_t NamespaceIdentity::format() const {
  const uint32_t low = flbas & 0xf;
  return nlbaf < 16 ? low : low | (uint32_t{flbas} >> 5 & 3) << 4;
}

Result<std::vector<uint16_t>> decode_stream_status(ConstBytes bytes) {
  if (bytes.size() < 2) return too_short("list of open streams");
  const size_t count = std::min<size_t>(load<uint16_t>(bytes, 0), (bytes.size() - 2) / 2);
  std::vector<uint16_t> open(count);
  for (size_t i = 0; i < count; ++i) open[i] = load<uint16_t>(bytes, 2 + 2 * i);
  return open;
}

std::vector<std::byte> encode_stream_status(std::span<const uint16_t> open) {
  std::vector<std::byte> bytes(2 + 2 * open.size());
  store(bytes, 0, static_cast<uint16_t>(open.size()));
  for (size_t i = 0; i < open.size(); ++i) store(bytes, 2 + 2 * i, open[i]);
  return bytes;
}

Result<std::vector<FdpConfiguration>> decode_fdp_configurations(ConstBytes bytes) {
  const Error bad = too_short("log page of FDP configurations");
  if (bytes.size() < kConfigurationsHeader) return bad;
  const size_t count = size_t{load<uint16_t>(bytes, 0)} + 1;
  std::vector<FdpConfiguration> all;
  ConstBytes rest = bytes.subspan(kConfigurationsHeader);
  for (size_t i = 0; i < count; ++i) {
    if (rest.size() < kConfigurationHeader) return bad;
    const size_t size = load<uint16_t>(rest, 0), handles = load<uint16_t>(rest, 8);
    if (size > rest.size() || !fits(rest.first(size), kConfigurationHeader, handles, kHandleBytes))
      return bad;
    FdpConfiguration one{load<uint8_t>(rest, 2),       load<uint32_t>(rest, 4),
                         load<uint16_t>(rest, 10),     load<uint32_t>(rest, 12),
                         load<uint64_t>(rest, 16),     load<uint32_t>(rest, 24),
                         std::vector<uint8_t>(handles)};
    for (size_t h = 0; h < handles; ++h)
      one.types[h] = load<uint8_t>(rest, kConfigurationHeader + h * kHandleBytes);
    all.push_back(one);
    rest = rest.subspan(size);
  }
  return all;
}

std::vector<std::byte> encode_fdp_configurations(std::span<const FdpConfiguration> all) {
  SFS_ASSERT(!all.empty());
  std::vector<std::byte> bytes(kConfigurationsHeader);
  for (const FdpConfiguration& one : all) {
    std::vector<std::byte> part(
        round_up(kConfigurationHeader + one.types.size() * kHandleBytes, 8));
    store(part, 0, static_cast<uint16_t>(part.size()));
    store(part, 2, one.attributes);
    store(part, 4, one.reclaim_groups);
    store(part, 8, static_cast<uint16_t>(one.types.size()));
    store(part, 10, one.max_placements);
    store(part, 12, one.namespaces);
    store(part, 16, one.reclaim_unit_bytes);
    store(part, 24, one.time_limit_s);
    for (size_t h = 0; h < one.types.size(); ++h)
      store(part, kConfigurationHeader + h * kHandleBytes, one.types[h]);
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  store(bytes, 0, static_cast<uint16_t>(all.size() - 1));
  store(bytes, 4, static_cast<uint32_t>(bytes.size()));
  return bytes;
}

Result<RuhStatusList> decode_ruh_status(ConstBytes bytes) {
  if (bytes.size() < kRuhStatusHeaderBytes) return too_short("reclaim unit handle status");
  const size_t count = load<uint16_t>(bytes, kRuhCountAt);
  const size_t here = (bytes.size() - kRuhStatusHeaderBytes) / RuhStatus::kBytes;
  return RuhStatusList{count,
                       decode_all<RuhStatus>(bytes, kRuhStatusHeaderBytes, std::min(count, here))};
}

std::vector<std::byte> encode_ruh_status(std::span<const RuhStatus> all) {
  std::vector<std::byte> bytes(kRuhStatusHeaderBytes);
  store(bytes, kRuhCountAt, static_cast<uint16_t>(all.size()));
  for (const RuhStatus& one : all) append(bytes, one);
  return bytes;
}

std::vector<std::byte> encode_placements(std::span<const uint16_t> placements) {
  std::vector<std::byte> bytes(2 * placements.size());
  for (size_t i = 0; i < placements.size(); ++i) store(bytes, 2 * i, placements[i]);
  return bytes;
}

std::vector<uint16_t> decode_placements(ConstBytes bytes) {
  std::vector<uint16_t> placements(bytes.size() / 2);
  for (size_t i = 0; i < placements.size(); ++i) placements[i] = load<uint16_t>(bytes, 2 * i);
  return placements;
}

std::vector<std::byte> encode_ranges(std::span<const Range> ranges) {
  std::vector<std::byte> bytes;
  for (const Range& range : ranges) append(bytes, range);
  return bytes;
}

std::vector<Range> decode_ranges(ConstBytes bytes) {
  return decode_all<Range>(bytes, 0, bytes.size() / Range::kBytes);
}

std::string text_of(std::span<const uint8_t> field) {
  std::string text;
  for (const uint8_t letter : field)
    text += letter >= 0x20 && letter < 0x7f ? static_cast<char>(letter) : letter == 0 ? ' ' : '?';
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace streamfs::nvme
