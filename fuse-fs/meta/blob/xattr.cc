#include "fuse-fs/meta/blob/xattr.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr size_t kUnitHeaderWords = sizeof(UnitHeader) / kWordSize;

// Returns the words of the unit without the first one, up to the end of the payload.
std::vector<uint64_t> encode_unit(std::string_view part, uint64_t next) {
  UnitHeader header{};
  header.next = next;
  header.length = part.size();
  header.checksum = crc32c(std::as_bytes(std::span(part)));
  std::vector<uint64_t> words(kUnitHeaderWords + div_round_up(part.size(), kWordSize));
  std::memcpy(words.data(), &header, sizeof(header));
  std::memcpy(&words[kUnitHeaderWords], part.data(), part.size());
  words.erase(words.begin());
  return words;
}

std::string read_bytes(const pmem::Region& region, uint64_t offset, uint64_t length) {
  std::vector<uint64_t> words(div_round_up(length, kWordSize));
  for (size_t i = 0; i < words.size(); ++i) words[i] = region.load(offset + i * kWordSize);
  std::string bytes(length, '\0');
  if (length > 0) std::memcpy(bytes.data(), words.data(), length);
  return bytes;
}

}  // namespace

Result<NewBlob> put_blob(Transaction& tx, Heap& heap, InodeId owner, std::string_view bytes) {
  NewBlob blob;
  const size_t count = div_round_up(bytes.size(), kBlobBytesPerUnit);
  for (size_t i = 0; i < count; ++i) {
    SFS_ASSIGN(Heap::Claim unit, heap.take(Heap::Purpose::kCreate));
    blob.units.push_back(std::move(unit));
  }
  for (size_t i = 0; i < count; ++i) {
    const uint64_t at = blob.units[i].offset();
    const uint64_t next = i + 1 < count ? blob.units[i + 1].offset() : 0;
    const auto part = bytes.substr(i * kBlobBytesPerUnit, kBlobBytesPerUnit);
    tx.body(at + kWordSize, encode_unit(part, next));
    tx.patch(at, unit_owner(owner, UnitKind::kBlob));
    heap.put_kind(tx, at, UnitKind::kBlob);
  }
  if (count > 0) blob.first = blob.units.front().offset();
  return blob;
}

namespace {

Result<std::string> read_part(const pmem::Region& region, uint64_t unit) {
  const UnitHeader header = read_header(region, unit);
  if (header.length > kBlobBytesPerUnit) return Error{EIO, "blob too long"};
  std::string part = read_bytes(region, unit + sizeof(UnitHeader), header.length);
  if (crc32c(std::as_bytes(std::span(part))) != header.checksum) return Error{EIO, "damaged blob"};
  return part;
}

}  // namespace

Result<std::string> read_blob_unit(const pmem::Region& region, uint64_t unit, Look look) {
  return read_mended(
      region, "a blob", unit, look,
      [unit](const pmem::Region& copy) { return read_part(copy, unit); },
      [](const Result<std::string>& part) {
        return sizeof(UnitHeader) + (part.ok() ? part->size() : 0);
      });
}

Result<std::string> read_blob(const Heap& heap, uint64_t first, InodeId owner, size_t limit) {
  SFS_ASSIGN(const auto units, heap.chain(first, UnitKind::kBlob, owner));
  std::string bytes;
  for (const uint64_t unit : units) {
    SFS_ASSIGN(const std::string part, read_blob_unit(heap.store().region, unit));
    if (bytes.size() + part.size() > limit) return Error{EIO, "blob too long"};
    bytes += part;
  }
  return bytes;
}

Result<XattrMap> decode_xattrs(std::string_view bytes) {
  XattrMap attributes;
  while (!bytes.empty()) {
    XattrHeader header{};
    if (bytes.size() < sizeof(header)) return Error{EIO, "damaged extended attributes"};
    std::memcpy(&header, bytes.data(), sizeof(header));
    bytes.remove_prefix(sizeof(header));
    if (header.name_length == 0 || header.name_length > bytes.size() ||
        header.value_length > bytes.size() - header.name_length) {
      return Error{EIO, "damaged extended attributes"};
    }
    attributes.emplace(bytes.substr(0, header.name_length),
                       bytes.substr(header.name_length, header.value_length));
    bytes.remove_prefix(header.name_length + header.value_length);
  }
  return attributes;
}

std::string encode_xattrs(const XattrMap& attributes) {
  std::string bytes;
  for (const auto& [name, value] : attributes) {
    const XattrHeader header{static_cast<uint16_t>(name.size()), 0,
                             static_cast<uint32_t>(value.size())};
    bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes.append(name);
    bytes.append(value);
  }
  return bytes;
}

}  // namespace streamfs::meta
