// Reads the metadata log's chunks in order, from where a snapshot began until a chunk is missing or
// torn. Writes nothing.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/metadata_log.h"

namespace streamfs::meta {

struct LogChunk {
  std::vector<std::byte> records;  // each followed by its bodies
  std::vector<LogCondition> conditions;
  uint64_t settled;
  uint64_t last_sequence;  // of the last record in it or in an earlier chunk
};

class LogReader {
 public:
  LogReader(const DataLabel& label, const SnapshotHeader& snapshot, LogDevice& device)
      : label_(label), device_(device), next_(snapshot.first_chunk), at_(snapshot.first_block) {}

  // Reads the next chunk. nullopt: the log ends here. Errors: the device's.
  Result<std::optional<LogChunk>> next();
  // Returns the blocks from the snapshot's first block to the end of the last chunk read. Blocks
  // that are passed again in a further turn of the ring count again.
  uint64_t blocks() const { return blocks_; }

 private:
  Result<std::optional<LogChunk>> read_at(uint64_t at);
  bool ours(LogChunkHeader header) const;

  const DataLabel& label_;
  LogDevice& device_;
  uint64_t next_, at_, blocks_ = 0;
};

}  // namespace streamfs::meta
