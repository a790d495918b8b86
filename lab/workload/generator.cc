#include "lab/workload/generator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/types.h"
#include "lab/workload/op_source.h"
#include "lab/workload/with_reads.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

using Make = std::unique_ptr<OpSource> (*)(const GeneratorOptions&);

struct Entry {
  const char* name;
  Make make;
};

constexpr Entry kMakers[] = {{"uniform", make_uniform},
                             {"hotcold", make_hot_cold},
                             {"zipf", make_zipf},
                             {"shifting", make_shifting},
                             {"fio4", make_fio4},
                             {"emmc3", make_emmc3},
                             {"vstream64", make_vstream64},
                             {"rocksdb-levels", make_rocksdb_levels},
                             {"noisy", make_noisy_neighbours},
                             {"smartphone", make_smartphone},
                             {"smartphone-steady", make_smartphone_steady},
                             {"iozone-sequential", make_iozone_sequential},
                             {"iozone-random", make_iozone_random}};

constexpr uint32_t kMinPages = 4096;  // room for a request of each job of vstream64, and more
constexpr uint32_t kGiBPages = kGiB / kBlockSize;

Error out_of_range(const char* option, double value, const char* range) {
  return {EINVAL, fmt::format("{} {}: {}", option, value, range)};
}

Result<void> check(const GeneratorOptions& options) {
  if (options.pages < kMinPages)
    return Error{EINVAL, fmt::format("{} pages: at least {}", options.pages, kMinPages)};
  if (options.pages > uint32_t{1} << 31)
    return Error{EINVAL, fmt::format("{} pages: at most 8 TiB", options.pages)};
  if (!(options.hot_writes > 0 && options.hot_writes < 1))
    return out_of_range("hot writes", options.hot_writes, "between 0 and 1");
  if (!(options.hot_space > 0 && options.hot_space < 1))
    return out_of_range("hot space", options.hot_space, "between 0 and 1");
  if (!(options.theta > 0 && options.theta <= 10))
    return out_of_range("theta", options.theta, "above 0, at most 10");
  if (options.tree != 0 && !(options.tree >= 0.1 && options.tree <= 0.9))
    return out_of_range("tree", options.tree, "from 0.1 to 0.9");
  if (options.table_pages != 0 &&
      (options.table_pages < 16 || options.table_pages > options.pages / 128))
    return out_of_range("pages of a table", options.table_pages, "16 to a 128th of the pages");
  if (!(options.read_share >= 0 && options.read_share <= 0.99))
    return out_of_range("read share", options.read_share, "from 0 to 0.99");
  return {};
}

}  // namespace

const std::vector<GeneratorKind>& generators() {
  static const std::vector<GeneratorKind> kinds = {
      {"uniform", "every page as likely as any other", 1, kGiBPages, true},
      {"hotcold", "a share of the writes to a share of the pages (--hot)", 2, kGiBPages, true},
      {"zipf", "page popularity by Zipf's law (--theta)", 8, kGiBPages, true},
      {"shifting", "hotcold with hot pages that move on (--hot, --period)", 2, kGiBPages, true},
      {"fio4", "four sequential jobs of lifetimes 1, 10, 33, 55 (Choi)", 4, kGiBPages, true},
      {"emmc3", "three jobs of lifetimes 2, 101, 709 (Vishwakarma 2019)", 3, kGiBPages, true},
      {"vstream64", "64 partitions in three sizes, round robin (Yong 2021)", 3, kGiBPages, true},
      {"rocksdb-levels", "WAL, flushes and levelled compactions, a stream a level (Choi)", 15,
       kGiBPages, false},
      {"noisy", "one sequential stream, two random ones, equally hot (WARP)", 3, kGiBPages, true},
      {"smartphone", "F2FS on a phone, seven streams that drift, with reads (Yong 2021)", 3,
       kGiBPages, true},
      {"smartphone-steady", "smartphone without the drift", 3, kGiBPages, true},
      {"iozone-sequential", "one file, rewritten from front to back (Lee)", 1, kGiBPages, false},
      {"iozone-random", "one file, each record once a pass, in any order (Lee)", 1, kGiBPages,
       false}};
  return kinds;
}

Result<const GeneratorKind*> find_generator(const std::string& name) {
  std::vector<std::string> names;
  for (const GeneratorKind& kind : generators()) {
    if (kind.name == name) return &kind;
    names.push_back(kind.name);
  }
  return Error{EINVAL, fmt::format("no workload '{}'; there are {}", name, fmt::join(names, ", "))};
}

Result<std::unique_ptr<OpSource>> make_generator(const std::string& name,
                                                 const GeneratorOptions& options) {
  SFS_ASSIGN(const GeneratorKind* const kind, find_generator(name));
  GeneratorOptions full = options;
  if (full.pages == 0) full.pages = kind->default_pages;
  if (full.writes == 0) full.writes = uint64_t{10} * full.pages;
  SFS_TRY(check(full));
  std::unique_ptr<OpSource> source = std::ranges::find(kMakers, name, &Entry::name)->make(full);
  if (full.read_share == 0) return source;
  return std::unique_ptr<OpSource>(
      std::make_unique<WithReads>(std::move(source), full.pages, full.read_share, full.seed));
}

Result<std::span<const PageOp>> Generator::next() {
  batch_.clear();
  while (batch_.size() < kBatchOps && written_ < writes_ && !failed_) request();
  if (failed_) return *failed_;
  return std::span<const PageOp>(batch_);
}

Result<void> Generator::rewind() {
  random_ = Random(seed_);
  written_ = 0;
  failed_.reset();
  restart();
  return {};
}

void Generator::write_run(ssd::Lpn first, uint32_t pages, uint16_t vstream, uint16_t pstream) {
  for (uint32_t i = 0; i < pages; ++i)
    write({.page = first + i,
           .address = first + i,
           .request_first = first,
           .request_pages = pages,
           .vstream = vstream,
           .pstream = pstream});
}

}  // namespace streamfs::lab
