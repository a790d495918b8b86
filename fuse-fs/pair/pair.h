// Which META belongs to which DATA: opening a pair, and refusing what is none.
// Thread safety: pure functions over the devices given.
#pragma once

#include <string>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/pair/open_pair.h"

namespace streamfs::pair {

// Opens both and checks that they belong together and neither stood still while the other was in
// use. With a metadata log META is rebuilt, if it was volatile and is gone, in a volatile place; if
// it is not persistent and was in use when the machine went down, where it lies, or in memory for
// who only reads (without a log it is `unproven`); any other only where restore_meta asks for it.
// What else a file holds is never overwritten. EMEDIUMTYPE: not streamfs, swapped, an older copy,
// or halves of different filesystems; EEXIST: nothing to restore. The context is a sentence that
// says what to do.
Result<OpenPair> open_pair(const std::string& meta_path, const std::string& data,
                           const PairOptions& options);

// An unproven META is sound, or EUCLEAN. Replays its journal.
Result<void> prove(const OpenPair& pair);

// The label in DATA's first block. EMEDIUMTYPE (none, or a META), EIO (damaged or unreadable).
Result<meta::DataLabel> read_label(blockdev::Device& device);
Result<void> write_label(blockdev::Device& device, const meta::DataLabel& label);  // mkfs's
// Another label in the place of the one there, which is whole at every moment. EIO.
Result<void> replace_label(blockdev::Device& device, const meta::DataLabel& label);
// A growth, or a new format version, was cut between META and DATA: the label says what META says
// from now on.
Result<void> renew_label(OpenPair& pair);
// Whether the two belong together.
Result<void> check_pair(const meta::Superblock& super, const meta::DataLabel& label,
                        const blockdev::DeviceInfo& device);

}  // namespace streamfs::pair
