#include "ssd/ftl/emmc/context_log.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "ssd/ftl/emmc/active_block.h"
#include "ssd/ftl_counts.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/layout.h"
#include "ssd/media/nand_faults.h"

namespace streamfs::ssd::emmc {
namespace {

struct PageHead {
  uint32_t magic;
  uint32_t checksum;  // CRC32C of the page behind it
  uint64_t generation;
  uint32_t place, pages;  // in the context
};
static_assert(sizeof(PageHead) == 24);
constexpr size_t kPayload = kPageBytes - sizeof(PageHead);

struct EntryHead {
  uint64_t sequence;
  uint32_t blocks, chunks;
};
static_assert(sizeof(EntryHead) == 16);

struct BlockEntry {
  uint32_t committed, erases;
};

template <typename Value>
void put(std::vector<std::byte>& bytes, std::span<const Value> values) {
  const auto raw = std::as_bytes(values);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Takes values from the front of `bytes`. Returns false if there are too few bytes.
template <typename Value>
bool take(ConstBytes& bytes, std::span<Value> values) {
  const Bytes raw = std::as_writable_bytes(values);
  if (bytes.size() < raw.size()) return false;
  std::memcpy(raw.data(), bytes.data(), raw.size());
  bytes = bytes.subspan(raw.size());
  return true;
}

uint32_t page_checksum(ConstBytes page) {
  return crc32c(page.subspan(offsetof(PageHead, generation)));
}

}  // namespace

ContextLog::ContextLog(Image& image, NandFaults* faults)
    : image_(image),
      faults_(faults),
      geometry_(image.geometry()),
      half_pages_(context_half_pages(geometry_)),
      chunks_(static_cast<uint32_t>(div_round_up(geometry_.user_pages, kChunkEntries))) {
  SFS_ASSERT(geometry_.map_unit_pages == 1);
}

std::vector<std::byte> ContextLog::pack(const Context& context,
                                        std::span<const uint32_t> chunks) const {
  std::vector<std::byte> bytes;
  const EntryHead head{context.base.sequence, geometry_.blocks,
                       static_cast<uint32_t>(chunks.size())};
  put(bytes, std::span(&head, 1));
  put(bytes, std::span<const ActiveBlock>(context.active));
  for (const ScanBase::Block& block : context.base.blocks) {
    const BlockEntry entry{block.committed, block.erases};
    put(bytes, std::span(&entry, 1));
  }
  for (const uint32_t chunk : chunks) {
    put(bytes, std::span(&chunk, 1));
    const size_t first = size_t{chunk} * kChunkEntries;
    const size_t count = std::min<size_t>(kChunkEntries, context.base.location.size() - first);
    put(bytes, std::span(context.base.location).subspan(first, count));
  }
  return bytes;
}

bool ContextLog::apply(const Entry& entry, Context& context) const {
  ConstBytes bytes = entry.bytes;
  EntryHead head{};
  if (!take(bytes, std::span(&head, 1)) || head.blocks != geometry_.blocks ||
      !take(bytes, std::span<ActiveBlock>(context.active)))
    return false;
  context.base.sequence = head.sequence;
  context.base.blocks.resize(geometry_.blocks);
  context.base.location.resize(geometry_.user_pages, kNoPage);
  for (ScanBase::Block& block : context.base.blocks) {
    BlockEntry one{};
    if (!take(bytes, std::span(&one, 1))) return false;
    block = {one.committed, one.erases};
  }
  for (uint32_t i = 0; i < head.chunks; ++i) {
    uint32_t chunk = 0;
    if (!take(bytes, std::span(&chunk, 1)) || chunk >= chunks_) return false;
    const size_t first = size_t{chunk} * kChunkEntries;
    const size_t count = std::min<size_t>(kChunkEntries, geometry_.user_pages - first);
    if (!take(bytes, std::span(context.base.location).subspan(first, count))) return false;
  }
  return true;
}

bool ContextLog::append(const Context& context, std::span<const uint32_t> dirty_chunks) {
  std::vector<std::byte> bytes = pack(context, dirty_chunks);
  uint64_t pages = div_round_up(bytes.size(), kPayload);
  if (next_page_ == 0 || next_page_ + pages > half_begin(half_) + half_pages_) {
    std::vector<uint32_t> all(chunks_);
    std::iota(all.begin(), all.end(), 0u);
    bytes = pack(context, all);
    pages = div_round_up(bytes.size(), kPayload);
    half_ = generation_ == 0 ? 0 : 1 - half_;
    SFS_ASSERT(pages <= half_pages_);
    if (!erase_half(half_)) return false;
    next_page_ = half_begin(half_);
  }
  ++generation_;
  std::vector<std::byte> page(kPageBytes);
  for (uint32_t place = 0; place < pages; ++place) {
    std::ranges::fill(page, std::byte{0});
    const size_t from = place * kPayload, some = std::min(kPayload, bytes.size() - from);
    std::memcpy(page.data() + sizeof(PageHead), bytes.data() + from, some);
    PageHead head{wire::kContextPageMagic, 0, generation_, place, static_cast<uint32_t>(pages)};
    std::memcpy(page.data(), &head, sizeof(head));
    head.checksum = page_checksum(page);
    std::memcpy(page.data(), &head, sizeof(head));
    if (!program(next_page_++, page)) return false;
  }
  FtlCounts& counts = image_.shared().ftl;
  ++counts[kContextsWritten];
  counts[kContextPages] += pages;
  return true;
}

bool ContextLog::program(uint64_t page, Bytes bytes) {
  if (!powered_) return false;
  if (faults_ != nullptr && faults_->power_fails_programming(static_cast<Ppn>(page), 1)) {
    SpareEntry none{};
    faults_->tear(bytes, none);
    powered_ = false;
  }
  if (image_.write_flash(static_cast<Ppn>(page), bytes) != 0) powered_ = false;
  return powered_;
}

bool ContextLog::erase_half(uint32_t half) {
  std::vector<std::byte> page(kPageBytes);
  const uint64_t begin = half_begin(half);
  for (uint64_t at = begin; at < begin + half_pages_; ++at) {
    if (at % geometry_.pages_per_block == 0 && faults_ != nullptr &&
        faults_->power_fails_erasing(static_cast<BlockIndex>(at / geometry_.pages_per_block)))
      powered_ = false;
    if (!powered_) return false;
    if (image_.write_flash(static_cast<Ppn>(at), page) != 0) powered_ = false;
  }
  return powered_;
}

std::optional<ContextLog::Entry> ContextLog::read_entry(uint64_t page, uint64_t end) const {
  Entry entry;
  std::vector<std::byte> bytes(kPageBytes);
  uint32_t pages = 1;
  for (uint32_t place = 0; place < pages; ++place, ++page) {
    if (page == end || image_.read_flash_pages(page, bytes) != 0) return std::nullopt;
    PageHead head{};
    std::memcpy(&head, bytes.data(), sizeof(head));
    if (head.magic != wire::kContextPageMagic || head.place != place ||
        head.checksum != page_checksum(bytes))
      return std::nullopt;
    if (place == 0) {
      pages = head.pages;
      entry.generation = head.generation;
    } else if (head.generation != entry.generation || head.pages != pages) {
      return std::nullopt;
    }
    entry.bytes.insert(entry.bytes.end(), bytes.begin() + sizeof(PageHead), bytes.end());
  }
  entry.end = page;
  return entry;
}

// Reads the contexts of a half. Generations go up by one; an entry that does not fit is torn, or
// left from before the half was erased.
std::optional<Context> ContextLog::read_half(uint32_t half, uint64_t& generation,
                                             uint64_t& end) const {
  std::optional<Context> found;
  const uint64_t stop = half_begin(half) + half_pages_;
  for (uint64_t page = half_begin(half); page < stop;) {
    const std::optional<Entry> entry = read_entry(page, stop);
    if (!entry || (found && entry->generation != generation + 1)) break;
    Context next = found.value_or(Context{});
    if (!apply(*entry, next)) break;
    found = std::move(next);
    generation = entry->generation;
    page = end = entry->end;
  }
  return found;
}

std::optional<Context> ContextLog::recover() {
  std::optional<Context> newest;
  for (uint32_t half = 0; half < 2; ++half) {
    uint64_t generation = 0, end = 0;
    std::optional<Context> found = read_half(half, generation, end);
    if (!found || generation < generation_) continue;
    newest = std::move(found);
    generation_ = generation;
    half_ = half;
  }
  next_page_ = 0;  // torn pages may follow the last entry, so the next one begins the other half
  return newest;
}

}  // namespace streamfs::ssd::emmc
