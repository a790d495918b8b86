// Strong types for ids and units, so that they cannot be swapped by accident.
// Thread safety: values. Crash: nothing here is persistent by itself.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace streamfs {

// An integer that can be compared with its own kind only.
template <typename Tag, typename Rep>
struct StrongId {
  using rep = Rep;
  Rep value{};
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

using InodeId = StrongId<struct InodeIdTag, uint64_t>;  // byte offset of the inode in META / 256
using BlockNo = StrongId<struct BlockNoTag, uint64_t>;  // 4 KiB block of the data device
using FileBlock = StrongId<struct FileBlockTag, uint64_t>;  // 4 KiB block within a file
using TxId = StrongId<struct TxIdTag, uint64_t>;            // sequence number of a journal record
using VStreamId = StrongId<struct VStreamIdTag, uint16_t>;  // label on writes that die together
using PStreamId = StrongId<struct PStreamIdTag, uint16_t>;  // stream of the device; 0 = default

inline constexpr uint64_t kBlockSize = 4096;  // file and data-device block, bytes
inline constexpr uint64_t kWordSize = 8;      // unit of selective programming, bytes
inline constexpr uint64_t kLineSize = 64;     // unit of flushing, bytes
inline constexpr uint64_t kMiB = 1 << 20;
inline constexpr uint64_t kGiB = 1 << 30;
inline constexpr VStreamId kDefaultVStream{0};
inline constexpr PStreamId kDefaultPStream{0};

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

constexpr uint64_t div_round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit;
}
constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return div_round_up(value, unit) * unit;
}
constexpr uint64_t round_down(uint64_t value, uint64_t unit) {
  return value / unit * unit;
}

}  // namespace streamfs

template <typename Tag, typename Rep>
struct std::hash<streamfs::StrongId<Tag, Rep>> {
  size_t operator()(streamfs::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
