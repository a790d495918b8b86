// A count of mounts and unmounts that is kept on META and on DATA. It tells the half that was
// mounted last from a copy that missed a mount.
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
// Raises DATA's count to that of `super`, META's superblock in `region`. META may be ahead by one,
// after a cut between the two counts, a rebuild of a mirrored META or the loss of a copy. A further
// cut in the next count would put it ahead by two, and a mount would take DATA for an older copy.
// Requires: META has not counted again yet.
Result<void> bring_data_level(blockdev::Device& device, pmem::Region& region,
                              const meta::Superblock& super);

// Returns whether DATA was in use with another copy of this META: DATA has a larger count, or an
// equal one and another mirror token.
bool is_older(const meta::Superblock& super, const std::optional<Attached>& attached);
// Returns whether this META was in use with another copy of DATA: it is ahead by more than one.
bool is_ahead(const meta::Superblock& super, const std::optional<Attached>& attached);

// Counts one attachment more on META, then on DATA, each durably. `pair.super` becomes META's
// superblock. If one of two copies of META is in use alone, draws a new mirror token, so that the
// other copy is never taken for its equal. Drops a copy that fails meanwhile (`pair.degraded`).
Result<void> attach(OpenPair& pair);

// Returns a random token that is neither `before` nor 0.
uint32_t draw_token(uint32_t before);

uint64_t boot_of_machine();  // differs after each boot; 0: not known
// Returns whether META was in use when the machine went down. If it is not persistent, it may then
// lack any of the stores that the kernel had not written back.
bool machine_went_down(const meta::Superblock& super);

}  // namespace streamfs::pair
