// Bytes of any length up to 64 KiB in chained kBlob units, and extended attributes as such bytes.
//
// A blob never changes: a new one is written into units nobody uses (as bodies, unlogged), and one
// record swaps the inode's pointer and gives the old units up.
//
// Thread safety: pure functions over a heap; the inode's mutex guards the pointer.
// What a crash leaves: the old blob or the new one.
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

// A blob written but not yet pointed to.
struct NewBlob {
  uint64_t first = 0;  // 0 for an empty one
  std::vector<Heap::Claim> units;

  void keep() {
    for (Heap::Claim& unit : units) unit.keep();
  }
};
// ENOSPC. The caller's record points somewhere at `first`.
Result<NewBlob> put_blob(Transaction& tx, Heap& heap, InodeId owner, std::string_view bytes);
// The payload of one unit; EIO: damaged.
Result<std::string> read_blob_unit(const pmem::Region& region, uint64_t unit,
                                   Look look = Look::kFirst);
// EIO: broken chain or checksum. ENOMEM never: at most `limit` bytes, else EIO.
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
