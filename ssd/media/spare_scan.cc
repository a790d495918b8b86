#include "ssd/media/spare_scan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/layout.h"

namespace streamfs::ssd {
namespace {

class Scanner {
 public:
  Scanner(Image& image, bool mark, const ScanBase* base = nullptr)
      : image_(image),
        mark_(mark),
        base_(base),
        geometry_(image.geometry().in_map_units()),
        per_block_(geometry_.pages_per_block),
        wordline_(geometry_.wordline_pages),
        spare_(image.spare()),
        found_(geometry_.blocks) {}

  SpareScan run() {
    out_.blocks.resize(geometry_.blocks);
    for (BlockIndex block = 0; block < geometry_.blocks; ++block) survey(block);
    for (BlockIndex block = 0; block < geometry_.blocks; ++block) verify(block);
    resolve();
    return std::move(out_);
  }
  uint32_t blocks_read() const { return blocks_read_; }
  // Returns whether the base is older than the flash allows: a block erased since was programmed.
  bool stale() const { return stale_; }

 private:
  struct Found {
    uint64_t last_sequence = 0;  // of its last wordline
    bool torn = false;
  };

  SpareKind kind(Ppn at) const {
    const SpareEntry& entry = spare_[at];
    const SpareKind kind = kind_of(entry, image_.blocks()[at / per_block_].erases);
    const bool sane = entry.lpn < geometry_.user_pages || entry.lpn == kNoPage;
    return kind == SpareKind::kProgrammed && !sane ? SpareKind::kGarbage : kind;
  }

  void survey(BlockIndex block) {
    const BlockRecord& record = image_.blocks()[block];
    RecoveredBlock& into = out_.blocks[block];
    into.erases = record.erases;
    into.frontier = static_cast<FrontierId>(std::min(record.frontier, geometry_.frontiers() - 1));
    into.failed = (record.state & kBlockFailed) != 0;
    into.retired = (record.state & kBlockRetired) != 0;
    if (into.retired) return;
    if ((record.state & kBlockErasing) != 0) {
      out_.half_erased.push_back(block);
      out_.unclean.push_back(block);
      return;
    }
    if (base_ != nullptr && record.erases != base_->blocks[block].erases) {  // erased since
      for (Ppn at = block * per_block_; at < block * per_block_ + wordline_; ++at)
        stale_ = stale_ || kind(at) != SpareKind::kErased;
      return;
    }
    if (base_ != nullptr && base_->blocks[block].committed == per_block_) {
      into.written = per_block_;
      return;
    }
    ++blocks_read_;
    kinds_.clear();
    for (uint32_t first = 0; first < per_block_; first += wordline_) {
      uint32_t used = 0;  // pages up to the last one that is not erased
      for (uint32_t i = 0; i < wordline_; ++i) {
        kinds_.push_back(kind(block * per_block_ + first + i));
        if (kinds_.back() != SpareKind::kErased) used = i + 1;
      }
      if (used == 0) break;
      into.written = first + (geometry_.plp ? used : wordline_);
    }
    judge(block);
  }

  // Judges the missing pages between programmed ones: torn if a power cut can have caused that,
  // else damaged.
  void judge(BlockIndex block) {
    const uint32_t written = out_.blocks[block].written;
    const bool doubtful = (image_.blocks()[block].state & kBlockDoubtful) != 0;
    bool garbage = false;
    for (uint32_t i = 0; i < written; ++i) {
      if (kinds_[i] == SpareKind::kProgrammed) {
        const uint64_t sequence = spare_[block * per_block_ + i].sequence;
        if (in_last_wordline(i, written))
          found_[block].last_sequence = std::max(found_[block].last_sequence, sequence);
        continue;
      }
      garbage |= kinds_[i] == SpareKind::kGarbage;
      const bool cut = geometry_.plp ? i + 1 == written : in_last_wordline(i, written);
      if (cut)
        found_[block].torn = true;
      else if (!doubtful)
        ++out_.damaged_pages;
    }
    if (garbage) out_.unclean.push_back(block);
    last_sequence_ = std::max(last_sequence_, found_[block].last_sequence);
  }

  bool in_last_wordline(uint32_t i, uint32_t written) const {
    return i / wordline_ == (written - 1) / wordline_;
  }

  void verify(BlockIndex block) {
    const uint32_t written = out_.blocks[block].written;
    if (written == 0 || known_full(block)) return;
    const bool doubtful =
        (image_.blocks()[block].state & kBlockDoubtful) != 0 || found_[block].torn;
    const uint64_t window = uint64_t{geometry_.frontiers() + 1} * wordline_;
    const bool recent = found_[block].last_sequence + window > last_sequence_;
    if (!doubtful && !recent && written == per_block_) return;
    const uint32_t from = doubtful ? 0 : (written - 1) / wordline_ * wordline_;
    std::vector<std::byte> data(geometry_.map_unit_pages * kPageBytes);
    bool torn = found_[block].torn;
    for (Ppn at = block * per_block_ + from; at < block * per_block_ + written; ++at) {
      if (kind(at) != SpareKind::kProgrammed || spare_[at].lpn == kNoPage) continue;
      if (image_.read_flash(at, data) == 0 && fits(spare_[at], data)) continue;
      rejected_.insert(at);
      torn = true;
    }
    if (torn && mark_) image_.blocks()[block].state |= kBlockDoubtful;
  }

  bool known_full(BlockIndex block) const {
    return base_ != nullptr && out_.blocks[block].written == per_block_ &&
           base_->blocks[block].committed == per_block_;
  }

  // Takes the pages of the base that were neither trimmed nor erased since.
  void take_base(std::span<const uint64_t> trims) {
    for (Lpn page = 0; page < base_->location.size(); ++page) {
      const Ppn at = base_->location[page];
      if (at == kNoPage || trims[page] > base_->sequence) continue;
      const BlockIndex block = at / per_block_;
      if (at % per_block_ < out_.blocks[block].written) out_.location[page] = at;
    }
  }

  // Returns whether the base has a newer version of the page. Entries after the base's sequence are
  // newer. Entries up to it were in a buffer when the base was made, and are compared.
  bool superseded_by_base(const SpareEntry& entry) const {
    if (base_ == nullptr || entry.sequence > base_->sequence) return false;
    const Ppn known = base_->location[entry.lpn];
    return known != kNoPage && out_.location[entry.lpn] == known &&
           spare_[known].sequence >= entry.sequence;
  }

  void resolve() {
    const std::span<const uint64_t> trims = image_.trims();
    std::vector<uint64_t> newest(trims.begin(), trims.end());
    uint64_t last = newest.empty() ? 0 : *std::ranges::max_element(newest);
    out_.location.assign(geometry_.user_pages, kNoPage);
    if (base_ != nullptr) {
      take_base(trims);
      last = std::max(last, base_->sequence);
    }
    for (BlockIndex block = 0; block < geometry_.blocks; ++block) {
      if (known_full(block)) continue;
      const Ppn first = block * per_block_;
      for (Ppn at = first; at < first + out_.blocks[block].written; ++at) {
        if (kind(at) != SpareKind::kProgrammed) continue;
        const SpareEntry& entry = spare_[at];
        last = std::max(last, entry.sequence);
        if (entry.lpn == kNoPage || entry.sequence <= newest[entry.lpn] || rejected_.contains(at))
          continue;
        if (superseded_by_base(entry)) continue;
        newest[entry.lpn] = entry.sequence;
        out_.location[entry.lpn] = at;
      }
    }
    out_.next_sequence = last + 1;
  }

  Image& image_;
  const bool mark_;
  const ScanBase* const base_;
  const Geometry geometry_;
  const uint32_t per_block_;
  const uint32_t wordline_;
  const std::span<const SpareEntry> spare_;
  std::vector<Found> found_;
  std::vector<SpareKind> kinds_;  // of the block being surveyed
  std::unordered_set<Ppn> rejected_;
  uint64_t last_sequence_ = 0;
  uint32_t blocks_read_ = 0;
  bool stale_ = false;
  SpareScan out_;
};

}  // namespace

uint32_t checksum_of(const SpareEntry& entry) {
  return crc32c(std::as_bytes(std::span(&entry, 1)).first(offsetof(SpareEntry, checksum)));
}

SpareKind kind_of(const SpareEntry& entry, uint32_t erases) {
  if (std::ranges::all_of(std::as_bytes(std::span(&entry, 1)),
                          [](std::byte b) { return b == std::byte{0}; }))
    return SpareKind::kErased;
  const uint32_t expected = checksum_of(entry);
  if (entry.checksum == (expected ^ kBufferedMark)) return SpareKind::kErased;
  if (entry.checksum != expected) return SpareKind::kGarbage;
  return entry.erases == erases ? SpareKind::kProgrammed : SpareKind::kErased;
}

bool fits(const SpareEntry& entry, ConstBytes unit) {
  return crc32c(unit) == entry.data_checksum;
}

SpareScan scan_spare_since(Image& image, bool mark, const ScanBase& base, uint32_t& blocks_read) {
  Scanner scanner(image, mark, &base);
  SpareScan scan = scanner.run();
  blocks_read = scanner.blocks_read();
  if (!scanner.stale()) return scan;
  blocks_read = image.geometry().blocks;
  return scan_spare(image, mark);
}

SpareScan scan_spare(Image& image, bool mark) {
  return Scanner(image, mark).run();
}

}  // namespace streamfs::ssd
