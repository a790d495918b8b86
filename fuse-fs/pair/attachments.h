// How often META and DATA were attached to each other, kept on both: what tells the half that was
// mounted last from a copy of it that stood still meanwhile.
//
//   mount     META: n + 1, synced ──► DATA: n + 1, flushed
//   unmount   META: n + 2, synced ──► DATA: n + 2, flushed
//
// Thread safety: none; only mounting and unmounting call these. Crash: META may be ahead by one,
// never behind. On DATA the count has the label's last sector to itself: the others are written
// again as they are, so that a torn write cannot damage them.
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
  uint32_t mirror_token;  // of the META that was; 0 where it is kept once
};

// Nothing: DATA says none, as one that was made before there was a count, or none that is whole.
Result<std::optional<Attached>> read_attachments(blockdev::Device& device);
Result<void> write_attachments(blockdev::Device& device, Attached attached);

// Whether this META stood still while DATA was in use with another copy of it.
bool is_older(const meta::Superblock& super, const std::optional<Attached>& attached);
// Whether DATA did while this META was in use: it is ahead by more than a cut between the two
// leaves.
bool is_ahead(const meta::Superblock& super, const std::optional<Attached>& attached);

// One more on both, META first; its superblock is then `pair.super`. A copy of META that goes on
// without the other draws a new mirror token, so that the other is never taken for its equal. One
// of two that fails here is given up.
Result<void> attach(OpenPair& pair);

// Another than this one, and not 0.
uint32_t draw_token(uint32_t before);

uint64_t boot_of_machine();  // another after each boot; 0: not known
// Whether META was in use when the machine went down: where it is not persistent it may lack
// anything the kernel had not written back, in any order.
bool machine_went_down(const meta::Superblock& super);

}  // namespace streamfs::pair
