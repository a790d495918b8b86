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
  bool group_goes_on;      // kGroupGoesOn
};

class LogReader {
 public:
  LogReader(const DataLabel& label, const SnapshotHeader& snapshot, LogDevice& device)
      : label_(label),
        device_(device),
        next_(snapshot.first_chunk),
        at_(snapshot.first_block),
        whole_through_(snapshot.sequence) {}

  // Reads the next chunk. nullopt: the log ends here. Errors: the device's.
  Result<std::optional<LogChunk>> next();
  // Returns the blocks from the snapshot's first block to the end of the last chunk read. Blocks
  // that are passed again in a further turn of the ring count again.
  uint64_t blocks() const { return blocks_; }
  // Returns the last sequence of the snapshot and of the groups that were read whole.
  uint64_t whole_through() const { return whole_through_; }
  // Returns whether the last chunk read leaves its group unfinished. If the log ends there, no
  // record after whole_through() counts.
  bool in_group() const { return in_group_; }

 private:
  Result<std::optional<LogChunk>> read_at(uint64_t at);
  bool ours(LogChunkHeader header) const;

  const DataLabel& label_;
  LogDevice& device_;
  uint64_t next_, at_, blocks_ = 0;
  uint64_t whole_through_;
  bool in_group_ = false;
};

}  // namespace streamfs::meta
