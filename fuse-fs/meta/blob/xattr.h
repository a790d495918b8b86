// Writes and reads blobs, and encodes extended attributes. A blob is up to 64 KiB in a chain of
// kBlob units.
//
// A blob never changes. A new blob is written into unused units (as bodies, unlogged). A single
// record then swaps the inode's pointer and frees the old units.
//
// Thread safety: any thread. Requires: the caller holds the inode's mutex, which guards the
// pointer.
//
// After a crash: the inode has the old blob or the new one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/mended.h"

namespace streamfs::meta {

inline constexpr size_t kMaxXattrBytes =
    size_t{64} * 1024;  // of all attributes of an inode, headers too

inline constexpr size_t kMaxBlobUnits = kMaxXattrBytes / kBlobBytesPerUnit + 1;

// A blob that is written and to which no pointer leads yet. Unless keep() is called after the
// commit of the pointer, the destructor gives its units back.
struct NewBlob {
  uint64_t first = 0;  // 0 for an empty one
  std::vector<Heap::Claim> units;

  void keep() {
    for (Heap::Claim& unit : units) unit.keep();
  }
};
// Writes a blob into new units. The caller adds to `tx` a pointer to the blob's `first` unit.
// Errors: ENOSPC.
Result<NewBlob> put_blob(Transaction& tx, Heap& heap, InodeId owner, std::string_view bytes);
// Reads the payload of one unit. Errors: EIO, it is damaged.
Result<std::string> read_blob_unit(const pmem::Region& region, uint64_t unit,
                                   Look look = Look::kFirst);
// Reads a blob of at most `limit` bytes. Errors: EIO, the blob is longer, its chain is broken or a
// checksum is wrong.
Result<std::string> read_blob(const Heap& heap, uint64_t first, InodeId owner, size_t limit);

// An attribute in a blob: this header, the name, the value; unpadded.
struct XattrHeader {
  uint16_t name_length;
  uint16_t reserved;
  uint32_t value_length;
};
static_assert(sizeof(XattrHeader) == 8);

using XattrMap = std::map<std::string, std::string, std::less<>>;
Result<XattrMap> decode_xattrs(std::string_view bytes);  // EIO
std::string encode_xattrs(const XattrMap& attributes);

}  // namespace streamfs::meta
