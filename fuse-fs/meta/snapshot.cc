#include "fuse-fs/meta/snapshot.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kPagesAtOnce = 256;
constexpr std::array kSnapshotRegions{RegionKind::kBlockBitmap, RegionKind::kUntrimmed,
                                      RegionKind::kVStreams, RegionKind::kHeapMap,
                                      RegionKind::kHeap};

bool all_zero(const std::byte* page) {
  return std::all_of(page, page + kUnitSize, [](std::byte b) { return b == std::byte{0}; });
}

// META offsets of the pages that hold anything.
std::vector<uint64_t> used_pages(const pmem::Region& region, const Geometry& geometry,
                                 SnapshotScope scope) {
  std::vector<uint64_t> pages;
  const auto add = [&](RegionKind kind) {
    for (uint64_t at = 0; at < geometry.region_bytes(kind); at += kUnitSize) {
      const uint64_t offset = geometry.region_offset(kind, at);
      if (!all_zero(region.at(offset))) pages.push_back(offset);
    }
  };
  for (const RegionKind kind : kSnapshotRegions) add(kind);
  if (scope == SnapshotScope::kWithChecksums) add(RegionKind::kChecksums);
  return pages;
}

uint64_t index_blocks(uint64_t pages) {
  return div_round_up(pages * sizeof(SnapshotPage), kBlockSize);
}

uint32_t header_checksum(SnapshotHeader header) {
  header.checksum = 0;
  return crc32c(std::as_bytes(std::span(&header, 1)));
}

// Copies a page word by word: META may be changing, and a word is never torn.
void copy_page(const pmem::Region& region, uint64_t offset, std::byte* to) {
  for (uint64_t at = 0; at < kUnitSize; at += kWordSize) {
    const uint64_t word = region.load(offset + at);
    std::memcpy(to + at, &word, kWordSize);
  }
}

Result<void> write_pages(const pmem::Region& region, const std::vector<uint64_t>& pages,
                         BlockNo first, LogDevice& device, std::vector<SnapshotPage>& index) {
  std::vector<std::byte> buffer;
  for (size_t done = 0; done < pages.size(); done += kPagesAtOnce) {
    const size_t count = std::min<size_t>(kPagesAtOnce, pages.size() - done);
    buffer.resize(count * kUnitSize);
    for (size_t i = 0; i < count; ++i) {
      const std::span page = std::span(buffer).subspan(i * kUnitSize, kUnitSize);
      copy_page(region, pages[done + i], page.data());
      index.push_back({static_cast<uint32_t>(pages[done + i] / kUnitSize), crc32c(page)});
    }
    SFS_TRY(device.write(BlockNo{first.value + done}, buffer));
  }
  return {};
}

std::optional<SnapshotHeader> read_header(const DataLabel& label, size_t area, LogDevice& device,
                                          Result<void>& failure) {
  std::vector<std::byte> block(kBlockSize);
  failure = device.read(BlockNo{label.snapshot_first_block[area]}, block);
  if (!failure.ok()) return std::nullopt;
  SnapshotHeader header;
  std::memcpy(&header, block.data(), sizeof(header));
  const bool ours = header.magic == kSnapshotMagic && header.checksum == header_checksum(header) &&
                    std::ranges::equal(header.uuid, label.geometry.uuid) &&
                    1 + index_blocks(header.pages) + header.pages <= label.snapshot_blocks;
  return ours ? std::optional(header) : std::nullopt;
}

// Gives each page, found whole, to `take` with its offset in META.
template <typename Take>
Result<void> read_pages(const Geometry& geometry, const DataLabel& label,
                        const SnapshotHeader& header, LogDevice& device, Take&& take) {
  uint64_t at = label.snapshot_first_block[header.generation % 2] + 1;
  std::vector<std::byte> raw(index_blocks(header.pages) * kBlockSize);
  if (!raw.empty()) SFS_TRY(device.read(BlockNo{at}, raw));
  std::vector<SnapshotPage> index(header.pages);
  std::memcpy(index.data(), raw.data(), index.size() * sizeof(SnapshotPage));
  if (crc32c(std::as_bytes(std::span(index))) != header.index_checksum) {
    return Error{EIO, "the snapshot's index is damaged"};
  }
  at += index_blocks(header.pages);
  std::vector<std::byte> page(kUnitSize);
  std::array<uint64_t, kUnitSize / kWordSize> words{};
  for (const SnapshotPage& entry : index) {
    SFS_TRY(device.read(BlockNo{at++}, page));
    if (crc32c(page) != entry.checksum || entry.number >= geometry.meta_size() / kUnitSize) {
      return Error{EIO, "a page of the snapshot is damaged"};
    }
    std::memcpy(words.data(), page.data(), kUnitSize);
    take(entry.number * kUnitSize, words);
  }
  return {};
}

void zero_region(pmem::Region& region) {
  const std::vector<uint64_t> zeroes(kUnitSize / kWordSize);
  for (uint64_t at = 0; at + kUnitSize <= region.size(); at += kUnitSize) region.store(at, zeroes);
}

}  // namespace

Result<uint64_t> write_snapshot(const pmem::Region& region, const Geometry& geometry,
                                const DataLabel& label, SnapshotHeader header, LogDevice& device,
                                SnapshotScope scope) {
  const std::vector<uint64_t> pages = used_pages(region, geometry, scope);
  const uint64_t index_length = index_blocks(pages.size());
  if (1 + index_length + pages.size() > label.snapshot_blocks) {
    return Error{ENOSPC, "META outgrew its snapshot area"};
  }
  const uint64_t area = label.snapshot_first_block[header.generation % 2];
  std::vector<std::byte> block(kBlockSize);
  SFS_TRY(device.write(BlockNo{area}, block));  // invalid from here until the end
  SFS_TRY(device.flush());
  std::vector<SnapshotPage> index;
  SFS_TRY(write_pages(region, pages, BlockNo{area + 1 + index_length}, device, index));
  std::vector<std::byte> raw(index_length * kBlockSize);
  std::memcpy(raw.data(), index.data(), index.size() * sizeof(SnapshotPage));
  if (!raw.empty()) SFS_TRY(device.write(BlockNo{area + 1}, raw));
  SFS_TRY(device.flush());
  header.magic = kSnapshotMagic;
  header.pages = pages.size();
  std::ranges::copy(geometry.super().uuid, header.uuid);
  header.index_checksum = crc32c(std::as_bytes(std::span(index)));
  header.checksum = header_checksum(header);
  std::memcpy(block.data(), &header, sizeof(header));
  SFS_TRY(device.write(BlockNo{area}, block));
  SFS_TRY(device.flush());
  return (2 + index_length + pages.size()) * kBlockSize;
}

Result<uint64_t> newest_snapshot_generation(const DataLabel& label, LogDevice& device) {
  uint64_t newest = 0;
  for (size_t area = 0; area < 2; ++area) {
    Result<void> failure;
    if (const auto header = read_header(label, area, device, failure)) {
      newest = std::max(newest, header->generation);
    }
    SFS_TRY(failure);
  }
  return newest;
}

Result<SnapshotHeader> load_snapshot(pmem::Region& region, const Geometry& geometry,
                                     const DataLabel& label, LogDevice& device) {
  std::optional<SnapshotHeader> newest;
  for (size_t area = 0; area < 2; ++area) {
    Result<void> failure;
    const auto header = read_header(label, area, device, failure);
    SFS_TRY(failure);
    if (header && (!newest || header->generation > newest->generation)) newest = header;
  }
  if (!newest) return Error{ENODATA, "DATA holds no snapshot of META"};
  // All of it is read once before anything in the region is given up.
  const auto look = [](uint64_t, const auto&) {};
  SFS_TRY(read_pages(geometry, label, *newest, device, look));
  zero_region(region);
  const auto store = [&](uint64_t offset, const auto& words) { region.store(offset, words); };
  SFS_TRY(read_pages(geometry, label, *newest, device, store));
  return *newest;
}

}  // namespace streamfs::meta
