#include "fuse-fs/data/checksums.h"

#include <fmt/format.h>
#include <spdlog/common.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>

#include "base/checksum.h"
#include "base/event.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::data {

uint32_t Checksums::of(ConstBytes block) {
  return meta::known_checksum(crc32c(block));
}
void Checksums::of_each(ConstBytes blocks, std::span<uint32_t> crcs) {
  crc32c_each(blocks, crcs);
  for (uint32_t& crc : crcs) crc = meta::known_checksum(crc);
}
uint32_t Checksums::copy(Bytes to, ConstBytes from) {
  return meta::known_checksum(copy_crc32c(to, from));
}

Result<void> Checksums::verify(InodeId id, BlockNo first, ConstBytes bytes, bool learn) {
  if (!verify_) return {};
  std::array<uint32_t, 256> stored{}, read{};
  const uint64_t count = bytes.size() / kBlockSize;
  for (uint64_t base = 0; base < count; base += stored.size()) {
    const uint64_t some = std::min<uint64_t>(stored.size(), count - base);
    engine_.checksums(BlockNo{first.value + base}, std::span(stored).first(some));
    const auto unknown = [](uint32_t crc) { return crc == 0; };
    if (!learn && std::ranges::all_of(std::span(stored).first(some), unknown)) continue;
    of_each(bytes.subspan(base * kBlockSize, some * kBlockSize), std::span(read).first(some));
    for (uint64_t i = 0; i < some; ++i) {
      if (stored[i] == 0 && !learn) continue;
      const BlockNo block{first.value + base + i};
      const uint32_t crc = read[i];
      if (stored[i] == 0) {
        engine_.learn_checksum(block, crc);
      } else if (stored[i] != crc && !engine_.mend_checksum(block, crc)) {
        errors_.fetch_add(1, std::memory_order_relaxed);
        log_event(Event::kDataDamaged, spdlog::level::err,
                  fmt::format("inode {}: block {} of the data device has changed: checksum {:08x}, "
                              "not {:08x}",
                              id.value, block.value, crc, stored[i]));
        return Error{EIO, "checksum of block " + std::to_string(block.value)};
      }
    }
  }
  return {};
}

}  // namespace streamfs::data
