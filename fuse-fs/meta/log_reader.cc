#include "fuse-fs/meta/log_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"

namespace streamfs::meta {
namespace {

uint32_t conditions_in(const LogChunkHeader& header) {
  return header.conditions & ~kGroupGoesOn;
}

}  // namespace

Result<std::optional<LogChunk>> LogReader::next() {
  for (const uint64_t at : {at_, uint64_t{0}}) {  // a chunk never crosses the end of the area
    SFS_ASSIGN(auto chunk, read_at(at));
    if (chunk) return chunk;
  }
  return std::optional<LogChunk>{};
}

Result<std::optional<LogChunk>> LogReader::read_at(uint64_t at) {
  std::optional<LogChunk> nothing;
  std::vector<std::byte> bytes(kBlockSize);
  SFS_TRY(device_.read(BlockNo{label_.log_first_block + at}, bytes));
  LogChunkHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (!ours(header)) return nothing;
  const uint64_t blocks = div_round_up(sizeof(header) + header.payload_bytes, kBlockSize);
  if (at + blocks > label_.log_blocks) return nothing;
  bytes.resize(blocks * kBlockSize);
  SFS_TRY(device_.read(BlockNo{label_.log_first_block + at}, bytes));
  bytes.resize(sizeof(header) + header.payload_bytes);
  bytes.erase(bytes.begin(), bytes.begin() + sizeof(header));
  if (crc32c(bytes) != header.payload_checksum) return nothing;
  ++next_;
  blocks_ += (at + label_.log_blocks - at_) % label_.log_blocks + blocks;
  at_ = (at + blocks) % label_.log_blocks;
  in_group_ = (header.conditions & kGroupGoesOn) != 0;
  if (!in_group_) whole_through_ = std::max(whole_through_, header.last_sequence);
  const uint32_t conditions = conditions_in(header);
  LogChunk chunk{std::move(bytes), std::vector<LogCondition>(conditions), header.settled,
                 header.last_sequence, in_group_};
  const size_t records = chunk.records.size() - conditions * sizeof(LogCondition);
  if (conditions != 0) {
    std::memcpy(chunk.conditions.data(), chunk.records.data() + records,
                conditions * sizeof(LogCondition));
  }
  chunk.records.resize(records);
  return std::optional(std::move(chunk));
}

bool LogReader::ours(LogChunkHeader header) const {
  const uint32_t checksum = std::exchange(header.checksum, 0);
  return header.magic == wire::kChunkMagic && header.number == next_ &&
         checksum == crc32c(std::as_bytes(std::span(&header, 1))) &&
         std::ranges::equal(header.uuid, label_.geometry.uuid) &&
         header.payload_bytes <= kChunkBytesMax &&
         conditions_in(header) <= header.payload_bytes / sizeof(LogCondition);
}

}  // namespace streamfs::meta
