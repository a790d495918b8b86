// rocksdb-levels: an LSM tree under random puts, with the streams of Choi's multi-stream NVMe: 1
// WAL, 2 L0, 3 L1, 4–6 L2, 7–9 L3, 10–12 L4, 13–14 L5; within a level by key range.
//
// A put is one key of one page, appended to the WAL four at a time. A full memtable is flushed to
// an L0 file and its WAL deleted. Four L0 files, or a level above its target, are compacted into
// the next level: one file, round robin, with those it overlaps (L0: all files). Files are as large
// as a memtable, written from their front, deleted (trimmed) as a whole when their successors are
// there. Levels grow by 6 towards L5, which starts with every key. WAL, flush and compaction take
// turns, as parallel threads would; eight L0 files stall the puts. Space comes from the next free
// pages, as in a file system that fills a device round and round. Memory: 12 bytes a page.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

constexpr uint16_t kWal = 1;
constexpr size_t kLevels = 6;
constexpr uint32_t kGrowth = 6;
constexpr size_t kL0Files = 4, kL0Stall = 8;
constexpr uint32_t kPutsPerAppend = 4;
constexpr uint32_t kFlushPages = 16, kCompactionPages = 64;  // for each append

struct Streams {
  uint16_t first, count;
};
constexpr std::array<Streams, kLevels> kStreams = {
    {{2, 1}, {3, 1}, {4, 3}, {7, 3}, {10, 3}, {13, 2}}};

using Keys = std::vector<uint32_t>;

struct File {
  Keys keys;  // sorted; one page each
  std::vector<ssd::Lpn> pages;
};

// Files that are being written, and the pages that die once they are complete.
struct Compaction {
  size_t level = 0;
  std::vector<File> outputs;
  size_t output = 0;
  std::vector<ssd::Lpn> dead;
  bool active() const { return output < outputs.size(); }
};

class RocksDb final : public Generator {
 public:
  explicit RocksDb(const GeneratorOptions& options)
      : Generator(options),
        keys_(options.tree == 0 ? pages_ / 10 * 7 : static_cast<uint32_t>(options.tree * pages_)),
        file_pages_(options.table_pages != 0 ? options.table_pages : std::max(pages_ / 8192, 16u)) {
    restart();
  }

 private:
  void restart() override {
    used_.assign(pages_, false);
    cursor_ = 0;
    for (std::vector<File>& level : levels_) level.clear();
    next_key_.fill(0);
    memtable_.clear();
    wal_.clear();
    flush_ = compaction_ = Compaction{};
    loaded_ = 0;
  }

  void request() override {
    if (loaded_ < keys_) return load();
    append();
    advance(flush_, kFlushPages);
    if (memtable_.size() >= file_pages_) start_flush();
    if (!compaction_.active()) start_compaction();
    advance(compaction_, kCompactionPages);
    while (levels_[0].size() >= kL0Stall) {
      if (!compaction_.active()) start_compaction();
      advance(compaction_, kCompactionPages);
    }
  }

  void load() {
    File file;
    while (file.keys.size() < file_pages_ && loaded_ < keys_) file.keys.push_back(loaded_++);
    write_file(file, kLevels - 1, file_pages_);
    levels_[kLevels - 1].push_back(std::move(file));
  }

  void append() {
    for (uint32_t i = 0; i < kPutsPerAppend; ++i) {
      memtable_.push_back(random_.below(keys_));
      const ssd::Lpn page = take_page();
      wal_.push_back(page);
      write({.page = page,
             .address = page,
             .request_first = page - i,
             .request_pages = kPutsPerAppend,
             .vstream = kWal,
             .pstream = kWal});
    }
  }

  void start_flush() {
    while (flush_.active()) advance(flush_, file_pages_);
    std::ranges::sort(memtable_);
    const auto repeated = std::ranges::unique(memtable_);
    memtable_.erase(repeated.begin(), repeated.end());
    flush_ = Compaction{};
    flush_.outputs.push_back({std::exchange(memtable_, {}), {}});
    flush_.dead = std::exchange(wal_, {});
  }

  uint64_t target(size_t level) const {
    uint64_t pages = keys_;
    for (size_t i = level; i + 1 < kLevels; ++i) pages /= kGrowth;
    return pages;
  }

  void start_compaction() {
    size_t worst = kLevels;
    double worst_score = 1;
    for (size_t level = 0; level + 1 < kLevels; ++level) {
      const auto files = static_cast<double>(levels_[level].size());
      const double score =
          level == 0
              ? files / kL0Files
              : files * file_pages_ / static_cast<double>(std::max<uint64_t>(target(level), 1));
      if (score < worst_score) continue;
      worst_score = score;
      worst = level;
    }
    if (worst == kLevels) return;
    compaction_ = Compaction{};
    compaction_.level = worst + 1;
    Keys keys;
    if (worst == 0) {
      for (File& file : std::exchange(levels_[0], {})) consume(std::move(file), keys);
    } else {
      std::vector<File>& level = levels_[worst];
      auto picked = std::ranges::lower_bound(level, next_key_[worst], {}, first_key);
      if (picked == level.end()) picked = level.begin();
      next_key_[worst] = picked->keys.back() + 1;
      consume(std::move(*picked), keys);
      level.erase(picked);
    }
    consume_overlap(levels_[worst + 1], keys);
    for (size_t i = 0; i < keys.size(); i += file_pages_) {
      const size_t end = std::min(keys.size(), i + file_pages_);
      compaction_.outputs.push_back({Keys(keys.begin() + static_cast<ptrdiff_t>(i),
                                          keys.begin() + static_cast<ptrdiff_t>(end)),
                                     {}});
    }
  }

  static uint32_t first_key(const File& file) { return file.keys.front(); }
  static uint32_t last_key(const File& file) { return file.keys.back(); }

  void consume(File file, Keys& keys) {
    Keys merged;
    merged.reserve(keys.size() + file.keys.size());
    std::ranges::set_union(keys, file.keys, std::back_inserter(merged));
    keys = std::move(merged);
    compaction_.dead.insert(compaction_.dead.end(), file.pages.begin(), file.pages.end());
  }

  void consume_overlap(std::vector<File>& level, Keys& keys) {
    const auto first = std::ranges::lower_bound(level, keys.front(), {}, last_key);
    const auto end = std::ranges::upper_bound(level, keys.back(), {}, first_key);
    if (first >= end) return;
    const std::vector<File> files(std::make_move_iterator(first), std::make_move_iterator(end));
    level.erase(first, end);
    Keys below;
    for (const File& file : files) {
      below.insert(below.end(), file.keys.begin(), file.keys.end());
      compaction_.dead.insert(compaction_.dead.end(), file.pages.begin(), file.pages.end());
    }
    Keys merged;
    merged.reserve(keys.size() + below.size());
    std::ranges::set_union(keys, below, std::back_inserter(merged));
    keys = std::move(merged);
  }

  void advance(Compaction& job, uint32_t pages) {
    while (job.active() && pages > 0) {
      File& file = job.outputs[job.output];
      pages -= write_file(file, job.level, pages);
      if (file.pages.size() == file.keys.size() && ++job.output == job.outputs.size()) finish(job);
    }
  }

  void finish(Compaction& job) {
    std::vector<File>& level = levels_[job.level];
    if (job.level == 0) {
      level.push_back(std::move(job.outputs[0]));
    } else {
      const auto at =
          std::ranges::lower_bound(level, first_key(job.outputs.front()), {}, first_key);
      level.insert(at, std::make_move_iterator(job.outputs.begin()),
                   std::make_move_iterator(job.outputs.end()));
    }
    for (const ssd::Lpn page : job.dead) {
      trim_page(page);
      used_[page] = false;
    }
    job = Compaction{};
  }

  // Writes the next pages of a file, at most so many, as one request. Returns their number.
  uint32_t write_file(File& file, size_t level, uint32_t at_most) {
    const auto written = static_cast<uint32_t>(file.pages.size());
    const uint32_t pages = std::min(at_most, static_cast<uint32_t>(file.keys.size()) - written);
    const Streams streams = kStreams[level];
    const auto range = static_cast<uint16_t>(uint64_t{file.keys[0]} * streams.count / keys_);
    const auto tag = static_cast<uint16_t>(streams.first + range);
    for (uint32_t i = 0; i < pages; ++i) {
      const ssd::Lpn page = take_page();
      file.pages.push_back(page);
      write({.page = page,
             .address = page,
             .request_first = page - i,
             .request_pages = pages,
             .vstream = tag,
             .pstream = tag});
    }
    return pages;
  }

  // Takes the next free page. If there is none, the stream fails.
  ssd::Lpn take_page() {
    for (uint32_t tries = 0; tries < pages_; ++tries) {
      const ssd::Lpn page = cursor_;
      cursor_ = cursor_ + 1 == pages_ ? 0 : cursor_ + 1;
      if (used_[page]) continue;
      used_[page] = true;
      return page;
    }
    fail({ENOSPC, fmt::format("rocksdb-levels: {} keys and their compactions fill all {} pages",
                              keys_, pages_)});
    return cursor_;
  }

  const uint32_t keys_;
  const uint32_t file_pages_;
  std::vector<bool> used_;
  ssd::Lpn cursor_ = 0;
  std::array<std::vector<File>, kLevels> levels_;
  std::array<uint32_t, kLevels> next_key_{};
  Keys memtable_;
  std::vector<ssd::Lpn> wal_;
  Compaction flush_, compaction_;
  uint32_t loaded_ = 0;
};

}  // namespace

std::unique_ptr<OpSource> make_rocksdb_levels(const GeneratorOptions& options) {
  return std::make_unique<RocksDb>(options);
}

}  // namespace streamfs::lab
