#include "classifierd/src_core/greedy_ftl.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "base/assert.h"

namespace streamfs::classifier {

namespace {

constexpr uint32_t kNone = ~uint32_t{0};
constexpr size_t kReserveBlocks = 2;

class GreedyFtl {
 public:
  GreedyFtl(const PageTrace& trace, uint32_t classes, const FtlSettings& settings)
      : block_pages_(settings.block_pages),
        place_(trace.pages(), kNone),
        open_(classes, kNone),
        by_valid_(settings.block_pages + 1) {
    const double live = trace.peak_live() * (1 + settings.spare);
    const auto blocks = static_cast<uint32_t>(std::ceil(live / block_pages_)) + classes +
                        static_cast<uint32_t>(kReserveBlocks) + 1;
    owner_.assign(size_t{blocks} * block_pages_, kNone);
    blocks_.resize(blocks);
    for (uint32_t b = blocks; b > 0; --b) free_.push_back(b - 1);
  }

  void trim(uint32_t page) {
    const uint32_t at = place_[page];
    if (at == kNone) return;
    place_[page] = kNone;
    owner_[at] = kNone;
    Block& block = blocks_[at / block_pages_];
    if (block.closed) unlist(at / block_pages_);
    --block.valid;
    if (block.closed) list(at / block_pages_);
  }

  void write(uint32_t page, uint8_t cls) {
    trim(page);
    append(page, cls);
    ++user_;
    while (free_.size() <= kReserveBlocks && collect()) {
    }
  }

  uint64_t user() const { return user_; }
  uint64_t copied() const { return copied_; }

 private:
  struct Block {
    uint32_t used = 0;
    uint32_t valid = 0;
    uint32_t listed = 0;  // place in by_valid_[valid]
    uint8_t cls = 0;
    bool closed = false;
  };

  void list(uint32_t b) {
    auto& bucket = by_valid_[blocks_[b].valid];
    blocks_[b].listed = static_cast<uint32_t>(bucket.size());
    bucket.push_back(b);
    fewest_ = std::min(fewest_, blocks_[b].valid);
  }

  void unlist(uint32_t b) {
    auto& bucket = by_valid_[blocks_[b].valid];
    bucket[blocks_[b].listed] = bucket.back();
    blocks_[bucket.back()].listed = blocks_[b].listed;
    bucket.pop_back();
  }

  void append(uint32_t page, uint8_t cls) {
    if (open_[cls] == kNone) {
      SFS_ASSERT(!free_.empty());
      open_[cls] = free_.back();
      free_.pop_back();
      blocks_[open_[cls]] = {.cls = cls};
    }
    Block& block = blocks_[open_[cls]];
    const uint32_t at = open_[cls] * block_pages_ + block.used++;
    place_[page] = at;
    owner_[at] = page;
    ++block.valid;
    if (block.used < block_pages_) return;
    block.closed = true;
    list(open_[cls]);
    open_[cls] = kNone;
  }

  bool collect() {
    while (fewest_ < block_pages_ && by_valid_[fewest_].empty()) ++fewest_;
    if (fewest_ >= block_pages_) return false;           // Nothing to win.
    const uint32_t victim = by_valid_[fewest_].front();  // First: fair among equals.
    unlist(victim);
    blocks_[victim].closed = false;
    for (uint32_t i = 0; i < block_pages_; ++i) {
      uint32_t& owner = owner_[victim * block_pages_ + i];
      if (owner == kNone) continue;
      const uint32_t page = owner;
      owner = kNone;
      append(page, blocks_[victim].cls);
      ++copied_;
    }
    blocks_[victim] = {};
    free_.insert(free_.begin(), victim);
    return true;
  }

  uint32_t block_pages_;
  std::vector<uint32_t> place_;  // page → physical page
  std::vector<uint32_t> owner_;  // physical page → page
  std::vector<Block> blocks_;
  std::vector<uint32_t> open_;
  std::vector<uint32_t> free_;
  std::vector<std::vector<uint32_t>> by_valid_;
  uint32_t fewest_ = 0;
  uint64_t user_ = 0;
  uint64_t copied_ = 0;
};

}  // namespace

FtlResult simulate(const PageTrace& trace, std::span<const uint8_t> tags,
                   const FtlSettings& settings) {
  if (!tags.empty() && tags.size() != trace.writes()) {
    throw std::invalid_argument("as many tags as pages written are needed");
  }
  if (settings.block_pages == 0 || !(settings.spare > 0)) {
    throw std::invalid_argument("a block needs pages and the device needs spare space");
  }
  const uint32_t classes = tags.empty() ? 1 : uint32_t{*std::ranges::max_element(tags)} + 1;
  GreedyFtl ftl(trace, classes, settings);
  const auto total = static_cast<double>(trace.writes());
  const auto from = static_cast<uint64_t>(settings.measure_from * total);
  const auto to = static_cast<uint64_t>(settings.measure_to * total);
  FtlResult begin{};
  FtlResult end{};
  uint64_t written = 0;
  for (const PageTrace::Step& step : trace.steps()) {
    if (step.trim) {
      ftl.trim(step.page);
      continue;
    }
    if (written == from) begin = {ftl.user(), ftl.copied()};
    if (written == to) break;
    ftl.write(step.page, tags.empty() ? uint8_t{0} : tags[written]);
    ++written;
  }
  end = {ftl.user(), ftl.copied()};
  return {end.user_pages - begin.user_pages, end.copied_pages - begin.copied_pages};
}

}  // namespace streamfs::classifier
