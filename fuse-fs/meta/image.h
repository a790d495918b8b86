// Checksums of media objects, each over exactly the words that mean something.
// Thread safety: pure functions.
#pragma once

#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

uint32_t superblock_checksum(const Superblock& super);
uint32_t inode_checksum(const InodeImage& image);
uint32_t extent_checksum(const ExtentSlot& slot);
uint32_t label_checksum(const DataLabel& label);

}  // namespace streamfs::meta
