// Counts mounts and unmounts on META and on DATA. By the two counts, a mount recognises a META or a
// DATA that is a copy from before the last mount.
//
//   mount     META: n + 1, synced ──► DATA: n + 1, flushed
//   unmount   META: n + 2, synced ──► DATA: n + 2, flushed
//
// Requires: one thread at a time writes block 0 of DATA. After a crash: META may be ahead of DATA
// by one, never behind. On DATA the count has the last sector of the label's block to itself. The
// other sectors are written again unchanged, so that a torn write cannot damage them.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/pair/open_pair.h"

namespace streamfs::pair {

struct Attached {
  uint64_t count;
  uint32_t mirror_token;  // of the META that was attached last; 0 if META is kept once
};

// Returns nullopt if DATA has no count, or a damaged one.
Result<std::optional<Attached>> read_attachments(blockdev::Device& device);
Result<void> write_attachments(blockdev::Device& device, Attached attached);
// Raises DATA's count to that of `super`, META's superblock in `region`. Does nothing if DATA has
// no count or a larger one. META is ahead by one after a cut between the two counts, a rebuild of a
// mirrored META or the loss of a copy. If the next count met a cut too, META would be ahead by two,
// and a mount would take DATA for an older copy. Requires: this mount has not counted on META yet.
Result<void> bring_data_level(blockdev::Device& device, pmem::Region& region,
                              const meta::Superblock& super);

// Returns whether DATA was in use with another copy of this META: DATA has a larger count, or an
// equal one and another mirror token.
bool is_older(const meta::Superblock& super, const std::optional<Attached>& attached);
// Returns whether this META was in use with another copy of DATA: META's count is ahead by more
// than one.
bool is_ahead(const meta::Superblock& super, const std::optional<Attached>& attached);

// Counts one attachment more on META, then on DATA, each durably. `pair.super` becomes META's
// superblock. If one of two copies of META is in use alone, draws a new mirror token, so that the
// other copy is never taken for its equal. Drops a copy that fails meanwhile (`pair.degraded`).
Result<void> attach(OpenPair& pair);

// Returns a random token that is neither `before` nor 0.
uint32_t draw_token(uint32_t before);

uint64_t boot_of_machine();  // differs after each boot; 0: not known
// Returns whether META was in use when the machine went down, or is distrusted
// (Engine::distrust()). A META that is not persistent may then lack any of the stores that the
// kernel had not written back.
bool machine_went_down(const meta::Superblock& super);

}  // namespace streamfs::pair
