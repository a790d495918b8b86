// Opens META and DATA as one filesystem and refuses two that do not belong together.
//
// Thread safety: functions of values only. Requires: no other thread reads or writes block 0 of
// DATA meanwhile, because some functions rewrite it.
//
// After a crash: DATA's label is whole, the old or the new one, except in mkfs. A META that was
// being rebuilt has no superblock yet or still counts as in use. The next open_pair() rebuilds it
// again, or asks for restore_meta.
#pragma once

#include <string>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/pair/open_pair.h"

namespace streamfs::pair {

// Opens both devices and checks that they belong together and that neither missed a mount of the
// other. Rebuilds META from the metadata log on DATA in three cases:
//   - META was volatile and is lost, and its place is volatile, too.
//   - META is not persistent and was in use when the machine went down. A read-only open rebuilds
//     it in memory. Without a log, or with meta_as_it_is, sets `unproven` instead.
//   - restore_meta asks for it, and META is lost, damaged or an older copy.
// A rebuild overwrites a file only if both superblocks in it are zeroes, damaged, or this
// filesystem's.
// Errors: EMEDIUMTYPE (not streamfs, swapped, an older copy, halves of different filesystems, one
// place named of a META that is kept twice), EEXIST (META is whole and restore_meta is set, or
// there is no log to rebuild META from), EINVAL (meta_in_memory without read_only), ENOENT (the
// place of a lost volatile META would not be volatile), EROFS (a read-only open cannot rebuild
// META), EIO and ENODATA (the log is damaged or empty), those of opening the devices. The context
// says what is wrong and, as a rule, what to do.
Result<OpenPair> open_pair(const std::string& meta_path, const std::string& data,
                           const PairOptions& options);

// Replays the journal of an unproven META and checks it. Errors: EUCLEAN, META is damaged.
Result<void> prove(const OpenPair& pair);

// Reads the label in DATA's first block. Errors: EMEDIUMTYPE (no label, another version's, a META,
// an emulated SSD's image), EIO (damaged or unreadable).
Result<meta::DataLabel> read_label(blockdev::Device& device);
// Overwrites the first block with one copy of the label and flushes. Only for mkfs: a torn write
// leaves no label.
Result<void> write_label(blockdev::Device& device, const meta::DataLabel& label);
// Replaces both copies of the label, one after the other: one of them is whole at every moment.
Result<void> replace_label(blockdev::Device& device, const meta::DataLabel& label);
// Replaces the label if META's size, version or tunable features differ from it: a crash had come
// between META and DATA in a growth, a change of version or a tune. Changes `pair.label`.
Result<void> renew_label(OpenPair& pair);
// Errors: EMEDIUMTYPE, the uuids differ or DATA has become smaller. Logs a warning if DATA is
// another device than at mkfs.
Result<void> check_pair(const meta::Superblock& super, const meta::DataLabel& label,
                        const blockdev::DeviceInfo& device);

}  // namespace streamfs::pair
