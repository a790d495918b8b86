#include "fuse-fs/meta/snapshot.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/used_pages.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kPagesAtOnce = 256;

uint64_t index_blocks(uint64_t pages) {
  return div_round_up(pages * sizeof(SnapshotPage), kBlockSize);
}

uint32_t header_checksum(SnapshotHeader header) {
  header.checksum = 0;
  return crc32c(std::as_bytes(std::span(&header, 1)));
}

// Reads and writes the blocks of a snapshot area as if they were adjacent.
class Area {
 public:
  Area(const DataLabel& label, uint64_t generation, LogDevice& device)
      : ranges_(snapshot_area(label, generation)),
        blocks_(snapshot_capacity(label)),
        device_(device) {}

  uint64_t blocks() const { return blocks_; }
  Result<void> write(uint64_t at, ConstBytes bytes) {
    return each_piece(at, bytes.size(), [&](BlockNo first, uint64_t from, uint64_t length) {
      return device_.write(first, bytes.subspan(from, length));
    });
  }
  Result<void> read(uint64_t at, Bytes bytes) {
    return each_piece(at, bytes.size(), [&](BlockNo first, uint64_t from, uint64_t length) {
      return device_.read(first, bytes.subspan(from, length));
    });
  }

 private:
  template <typename Action>  // action(first block, offset in the bytes, length)
  Result<void> each_piece(uint64_t at, uint64_t length, Action&& action) {
    uint64_t done = 0;
    for (const BlockRange& range : ranges_) {
      if (done == length) break;
      if (at >= range.count) {
        at -= range.count;
        continue;
      }
      const uint64_t here = std::min(length - done, (range.count - at) * kBlockSize);
      SFS_TRY(action(BlockNo{range.first + at}, done, here));
      done += here;
      at = 0;
    }
    return {};
  }

  std::vector<BlockRange> ranges_;
  uint64_t blocks_;
  LogDevice& device_;
};

// Copies a page word by word: META may be changing, and a word is never torn.
void copy_page(const pmem::Region& region, uint64_t offset, std::byte* to) {
  for (uint64_t at = 0; at < kUnitSize; at += kWordSize) {
    const uint64_t word = region.load(offset + at);
    std::memcpy(to + at, &word, kWordSize);
  }
}

Result<void> write_pages(const pmem::Region& region, const std::vector<uint64_t>& pages,
                         uint64_t first, Area& area, std::vector<SnapshotPage>& index) {
  std::vector<std::byte> buffer;
  for (size_t done = 0; done < pages.size(); done += kPagesAtOnce) {
    const size_t count = std::min<size_t>(kPagesAtOnce, pages.size() - done);
    buffer.resize(count * kUnitSize);
    for (size_t i = 0; i < count; ++i) {
      const std::span page = std::span(buffer).subspan(i * kUnitSize, kUnitSize);
      copy_page(region, pages[done + i], page.data());
      index.push_back({static_cast<uint32_t>(pages[done + i] / kUnitSize), crc32c(page)});
    }
    SFS_TRY(area.write(first + done, buffer));
  }
  return {};
}

struct ReadHeader {
  SnapshotHeader header{};  // generation 0: none that is valid
  bool is_damaged = false;  // neither valid nor cleared
};

Result<ReadHeader> read_header(const DataLabel& label, uint64_t generation, LogDevice& device) {
  std::vector<std::byte> block(kBlockSize);
  Area area(label, generation, device);
  SFS_TRY(area.read(0, block));
  SnapshotHeader header;
  std::memcpy(&header, block.data(), sizeof(header));
  const bool ours = header.magic == wire::kSnapshotMagic &&
                    header.checksum == header_checksum(header) &&
                    std::ranges::equal(header.uuid, label.geometry.uuid) &&
                    header.generation % 2 == generation && header.first_block < label.log_blocks &&
                    header.sequence <= kMaxSequence && header.pages < area.blocks() &&
                    1 + index_blocks(header.pages) + header.pages <= area.blocks();
  if (ours) return ReadHeader{header, false};
  return ReadHeader{{}, header.magic != 0};
}

// Gives each page to `take`, with its offset in META. Errors: EIO, the index or a page is damaged.
template <typename Take>
Result<void> read_pages(const Geometry& geometry, const DataLabel& label,
                        const SnapshotHeader& header, LogDevice& device, Take&& take) {
  Area area(label, header.generation, device);
  std::vector<std::byte> raw(index_blocks(header.pages) * kBlockSize);
  if (!raw.empty()) SFS_TRY(area.read(1, raw));
  std::vector<SnapshotPage> index(header.pages);
  if (!index.empty()) std::memcpy(index.data(), raw.data(), index.size() * sizeof(SnapshotPage));
  if (crc32c(std::as_bytes(std::span(index))) != header.index_checksum) {
    return Error{EIO, "the snapshot's index is damaged"};
  }
  uint64_t at = 1 + index_blocks(header.pages);
  std::vector<std::byte> page(kUnitSize);
  std::array<uint64_t, kUnitSize / kWordSize> words{};
  for (const SnapshotPage& entry : index) {
    SFS_TRY(area.read(at++, page));
    if (crc32c(page) != entry.checksum || entry.number >= geometry.meta_size() / kUnitSize) {
      return Error{EIO, "a page of the snapshot is damaged"};
    }
    std::memcpy(words.data(), page.data(), kUnitSize);
    take(entry.number * kUnitSize, words);
  }
  return {};
}

}  // namespace

Result<void> clear_snapshot(const DataLabel& label, uint64_t generation, LogDevice& device) {
  const std::vector<std::byte> zeroes(kBlockSize);
  SFS_TRY(Area(label, generation, device).write(0, zeroes));
  return device.flush();
}

Result<SnapshotHeader> write_snapshot_pages(const pmem::Region& region, const Geometry& geometry,
                                            const DataLabel& label, SnapshotHeader header,
                                            LogDevice& device, const std::vector<uint64_t>& pages) {
  const uint64_t index_length = index_blocks(pages.size());
  Area area(label, header.generation, device);
  if (1 + index_length + pages.size() > area.blocks()) {
    return Error{ENOSPC, "META outgrew its snapshot area"};
  }
  std::vector<SnapshotPage> index;
  SFS_TRY(write_pages(region, pages, 1 + index_length, area, index));
  if (region.lost() > 0) return Error{EIO, "pages of META are lost: no snapshot of them is made"};
  std::vector<std::byte> raw(index_length * kBlockSize);
  std::memcpy(raw.data(), index.data(), index.size() * sizeof(SnapshotPage));
  if (!raw.empty()) SFS_TRY(area.write(1, raw));
  header.magic = wire::kSnapshotMagic;
  header.pages = pages.size();
  std::ranges::copy(geometry.super().uuid, header.uuid);
  header.index_checksum = crc32c(std::as_bytes(std::span(index)));
  header.checksum = header_checksum(header);
  return header;
}

Result<void> finish_snapshot(const SnapshotHeader& header, const DataLabel& label,
                             LogDevice& device) {
  SFS_TRY(device.flush());
  std::vector<std::byte> block(kBlockSize);
  std::memcpy(block.data(), &header, sizeof(header));
  SFS_TRY(Area(label, header.generation, device).write(0, block));
  return device.flush();
}

Result<uint64_t> write_snapshot(const pmem::Region& region, const Geometry& geometry,
                                const DataLabel& label, const SnapshotHeader& header,
                                LogDevice& device, SnapshotScope scope) {
  SFS_TRY(clear_snapshot(label, header.generation, device));
  SFS_ASSIGN(const SnapshotHeader written,
             write_snapshot_pages(region, geometry, label, header, device,
                                  used_pages(region, geometry, scope)));
  SFS_TRY(finish_snapshot(written, label, device));
  return snapshot_bytes(written);
}

uint64_t snapshot_bytes(const SnapshotHeader& header) {
  return (1 + index_blocks(header.pages) + header.pages) * kBlockSize;
}

Result<SnapshotHeaders> read_snapshot_headers(const DataLabel& label, LogDevice& device) {
  SnapshotHeaders out;
  Result<void> failure;
  int unreadable = 0;
  for (const uint64_t generation : {uint64_t{0}, uint64_t{1}}) {  // any of that area
    const auto read = read_header(label, generation, device);
    if (!read.ok() || read->is_damaged) {
      out.damage = "the header of snapshot area " + std::to_string(generation) +
                   (read.ok() ? " is damaged" : " is unreadable");
    }
    if (!read.ok()) {
      failure = read.error();
      ++unreadable;
    } else if (read->header.generation > out.newest.generation) {
      out.older = std::exchange(out.newest, read->header);
    } else {
      out.older = read->header;
    }
  }
  const bool is_alone_enough = (out.newest.first_chunk & kEitherSnapshot) != 0;
  if (unreadable > 0 && !is_alone_enough) return failure.error();
  return out;
}

Result<void> verify_snapshot(const Geometry& geometry, const DataLabel& label,
                             const SnapshotHeader& header, LogDevice& device) {
  return read_pages(geometry, label, header, device, [](uint64_t, const auto&) {});
}

Result<void> load_snapshot(pmem::Region& region, const Geometry& geometry, const DataLabel& label,
                           const SnapshotHeader& header, LogDevice& device) {
  region.store_zeroes(0, region.size());
  return read_pages(geometry, label, header, device,
                    [&](uint64_t offset, const auto& words) { region.store(offset, words); });
}

}  // namespace streamfs::meta
