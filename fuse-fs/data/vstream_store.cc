#include "fuse-fs/data/vstream_store.h"

#include <string.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/result.h"

namespace streamfs::data {

using meta::VStreamSlot;
using placement::SavedVStream;
using placement::Source;

std::vector<SavedVStream> VStreamStore::load() {
  std::vector<SavedVStream> out;
  for (const VStreamSlot& slot : engine_.load_vstreams()) {
    SavedVStream value;
    value.vstream = VStreamId{static_cast<uint16_t>(slot.head)};
    const auto source = static_cast<uint8_t>(slot.head >> 16);
    value.generation = static_cast<uint8_t>(slot.head >> 24);
    value.earned = (slot.head & meta::kVStreamEarned) != 0;
    value.owner = static_cast<uint32_t>(slot.head >> 40);
    const bool known = source <= static_cast<uint8_t>(Source::kInternal);
    value.source = known ? static_cast<Source>(source) : Source::kDefault;
    value.lifetime_bytes = slot.lifetime_bytes;
    value.lifetime_ms = slot.lifetime_ms;
    value.written_bytes = slot.written_bytes;
    value.name.assign(slot.name, ::strnlen(slot.name, placement::kNameMax));
    out.push_back(std::move(value));
  }
  return out;
}

Result<void> VStreamStore::store(uint32_t slot, const SavedVStream& value) {
  VStreamSlot out{};
  out.head = value.vstream.value | uint64_t{static_cast<uint8_t>(value.source)} << 16 |
             uint64_t{value.generation} << 24 | (value.earned ? meta::kVStreamEarned : 0) |
             uint64_t{value.owner} << 40;
  out.lifetime_bytes = value.lifetime_bytes;
  out.lifetime_ms = value.lifetime_ms;
  out.written_bytes = value.written_bytes;
  std::copy_n(value.name.begin(), std::min(value.name.size(), placement::kNameMax), out.name);
  return engine_.store_vstream(slot, out);
}

}  // namespace streamfs::data
