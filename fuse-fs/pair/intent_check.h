// fsck of the intent log: says what it holds, writes it to DATA, and empties a log that is damaged.
//
// A block that the log holds and DATA does not have is lost if its entry is damaged, or if DATA
// does not take it. META's checksum of the block tells which content is right. Reading a lost block
// gives EIO; in a filesystem without checksums it gives what DATA has.
//
// Thread safety: none; nothing else may use the pair.
// After a crash: the log is as it was, or has fewer entries, of blocks that are on DATA. A cut
// while a damaged log is emptied may leave entries without their bases. A second check goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/pair/open_pair.h"

namespace streamfs::pair {

struct IntentReport {
  uint64_t entries = 0;         // counting ones
  uint64_t blocks = 0;          // of files, whose newest content is in these entries
  uint64_t files = 0;           // with these blocks
  uint64_t written_blocks = 0;  // written to DATA by this check
  uint64_t lost_blocks = 0;
  // Damage of the log, and a problem for each inode that loses blocks.
  std::vector<meta::CheckReport::Problem> problems;
};

enum class IntentRepair : uint8_t {
  kNone,
  kWithoutLoss,  // the log stays if it holds a block that cannot be brought to DATA
  kAll,
};

// Checks the intent log of a META whose journal was replayed. A repair writes its blocks to DATA,
// flushes it and empties the log. Nothing is repaired if a page of META cannot be read. Requires:
// a repair only if the pair was opened for writing and META has no damage that meta::check()
// leaves. Errors: those of flushing DATA and of syncing META.
Result<IntentReport> check_intent_log(OpenPair& pair, IntentRepair how);

}  // namespace streamfs::pair
