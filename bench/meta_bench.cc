// The metadata engine's cost without FUSE: time, fences and lines of each operation, and the
// words it programs against those of the blocks a block file system would have written.
// META is ordinary memory that claims to be persistent: line flushes are counted, not executed; or,
// where a benchmark's name says so, memory as slow as a modelled medium.
//   meta_bench --benchmark_filter=Create
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/intent_log.h"
#include "pmem/latency_region.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMetaBytes = 256 << 20;
constexpr uint64_t kDataBlocks = 1 << 20;  // 4 GiB
constexpr size_t kBatch = 4096;            // names made or removed while the clock stands

CreateRequest node(uint32_t mode) {
  CreateRequest request;
  request.mode = mode;
  return request;
}

// Persistent memory is there; ordinary memory comes page by page as it is written, and each page
// stops the other cores.
void populate(pmem::Region& region) {
  for (uint64_t page = 0; page < region.size(); page += kBlockSize) {
    region.store_word(page, 1);
    region.store_word(page, 0);
  }
}

class Mounted {
 public:
  // Without a checkpointer, rings are checkpointed when they are full or the bench asks for it.
  explicit Mounted(bool checkpointer = true, const pmem::LatencyModel* medium = nullptr,
                   uint64_t bytes = kMetaBytes)
      : region_(medium == nullptr
                    ? pmem::make_memory_region(bytes, pmem::MetaClass::kPersistent)
                    : pmem::make_latency_region(bytes, pmem::MetaClass::kPersistent, *medium)),
        medium_(medium == nullptr ? nullptr : static_cast<pmem::LatencyRegion*>(region_.get())) {
    charge(false);
    populate(*region_);
    FormatOptions options;
    options.data_blocks = kDataBlocks;
    const Superblock super = plan_format(bytes, pmem::MetaClass::kPersistent, options).value();
    if (!format(*region_, super, system_clock().now()).ok()) std::abort();
    engine_ = std::move(Engine::open(*region_, super, system_clock(),
                                     {.read_only = false, .start_background = checkpointer}))
                  .value();
  }

  Engine* operator->() { return engine_.get(); }
  // On, this thread waits for the medium, if there is one to wait for.
  void charge(bool on) {
    if (medium_ != nullptr) medium_->charge(on);
  }
  pmem::Counters pmem() const { return region_->counters(); }
  JournalStats commits() const { return engine_->journal().stats(); }

  InodeId directory(std::string_view name) {
    return engine_->create(engine_->root(), name, node(S_IFDIR | 0755)).value().id;
  }

 private:
  std::unique_ptr<pmem::Region> region_;
  pmem::LatencyRegion* medium_;
  std::unique_ptr<Engine> engine_;
};

// The cost of the commits between construction and report().
class CommitCost {
 public:
  explicit CommitCost(const Mounted& mounted) : mounted_(mounted), before_(mounted.commits()) {}
  void report(benchmark::State& state) const {
    const JournalStats now = mounted_.commits();
    const auto commits = static_cast<double>(now.commits - before_.commits);
    if (commits == 0) return;
    state.counters["fences"] =
        static_cast<double>(now.commit_fences - before_.commit_fences) / commits;
    state.counters["lines"] =
        static_cast<double>(now.commit_lines - before_.commit_lines) / commits;
  }

 private:
  const Mounted& mounted_;
  JournalStats before_;
};

// A thread's own directory and the files it works on, all of them looked up as a kernel would.
class Files {
 public:
  Files(Mounted& mounted, int thread)
      : mounted_(mounted), directory_(mounted.directory(fmt::format("d{}", thread))) {
    for (size_t i = 0; i < kBatch; ++i) names_.push_back(fmt::format("a-file-{:06}", i));
    ids_.resize(kBatch);
  }
  InodeId directory() const { return directory_; }
  const std::string& name(size_t i) const { return names_[i]; }
  InodeId id(size_t i) const { return ids_[i]; }

  void create(size_t i) {
    ids_[i] = mounted_->create(directory_, names_[i], node(S_IFREG | 0644)).value().id;
  }
  void unlink(size_t i) { benchmark::DoNotOptimize(mounted_->unlink(directory_, names_[i]).ok()); }
  void forget(size_t i) {
    if (mounted_->forget(ids_[i], 1)) (void)mounted_->free_orphan(ids_[i]);
  }
  void create_all() {
    for (size_t i = 0; i < kBatch; ++i) create(i);
  }
  void remove_all() {
    for (size_t i = 0; i < kBatch; ++i) unlink(i), forget(i);
  }

 private:
  Mounted& mounted_;
  InodeId directory_;
  std::vector<std::string> names_;
  std::vector<InodeId> ids_;
};

// Threads share one mount, each in a directory of its own; or have one each, which is as far as
// this machine lets two threads be faster than one.
enum class Mounts : uint8_t { kShared, kApart };

// Operations on one file after the other; the clock stands while `prepare` makes the next batch.
template <typename Prepare, typename Operation>
void measure(benchmark::State& state, const pmem::LatencyModel* medium, Mounts mounts,
             Prepare&& prepare, Operation&& operation) {
  static std::array<std::unique_ptr<Mounted>, 2> all;
  const auto thread = static_cast<size_t>(state.thread_index());
  std::unique_ptr<Mounted>& mounted = all[mounts == Mounts::kApart ? thread : 0];
  if (thread == 0 || mounts == Mounts::kApart) mounted = std::make_unique<Mounted>(true, medium);
  std::optional<Files> files;
  std::optional<CommitCost> cost;
  size_t next = 0;
  uint64_t batch = 0;
  for (auto _ : state) {
    if (next % kBatch == 0) {
      state.PauseTiming();
      mounted->charge(false);
      if (!files) files.emplace(*mounted, state.thread_index());
      prepare(*files, batch++);
      next = 0;
      cost.emplace(*mounted);
      mounted->charge(true);
      state.ResumeTiming();
    }
    operation(*mounted, *files, next++, batch);
  }
  if (state.threads() == 1) cost->report(state);
  state.SetItemsProcessed(state.iterations());
}

void create_once(Files& files, uint64_t batch) {
  if (batch == 0) files.create_all();
}

void Create(benchmark::State& state, const pmem::LatencyModel* medium,
            Mounts mounts = Mounts::kShared) {
  measure(
      state, medium, mounts,
      [](Files& files, uint64_t batch) {
        if (batch > 0) files.remove_all();
      },
      [](Mounted&, Files& files, size_t i, uint64_t) { files.create(i); });
}

void Lookup(benchmark::State& state, const pmem::LatencyModel* medium,
            Mounts mounts = Mounts::kShared) {
  measure(state, medium, mounts, create_once,
          [](Mounted& mounted, Files& files, size_t i, uint64_t) {
            benchmark::DoNotOptimize(mounted->lookup(files.directory(), files.name(i)).ok());
          });
}

// To another name and, in the next batch, back.
void Rename(benchmark::State& state, const pmem::LatencyModel* medium,
            Mounts mounts = Mounts::kShared) {
  measure(state, medium, mounts, create_once,
          [](Mounted& mounted, Files& files, size_t i, uint64_t batch) {
            const std::string& name = files.name(i);
            const std::string other = "other" + name.substr(6);
            const bool back = batch % 2 == 0;
            const auto done = mounted->rename(files.directory(), back ? other : name,
                                              files.directory(), back ? name : other, 0);
            if (!done.ok()) std::abort();
          });
}

void Chmod(benchmark::State& state, const pmem::LatencyModel* medium,
           Mounts mounts = Mounts::kShared) {
  measure(state, medium, mounts, create_once,
          [](Mounted& mounted, Files& files, size_t i, uint64_t batch) {
            AttributeChange change;
            change.mode = batch % 2 == 0 ? 0600 : 0644;
            if (!mounted->set_attributes(files.id(i), change).ok()) std::abort();
          });
}

void Unlink(benchmark::State& state, const pmem::LatencyModel* medium,
            Mounts mounts = Mounts::kShared) {
  measure(
      state, medium, mounts,
      [](Files& files, uint64_t batch) {
        for (size_t i = 0; batch > 0 && i < kBatch; ++i) files.forget(i);
        files.create_all();
      },
      [](Mounted&, Files& files, size_t i, uint64_t) { files.unlink(i); });
}

// Files in directories of `entries` each, as many files whatever that is, so that what differs is
// the size of a directory and not what the caches hold.
class Tree {
 public:
  static constexpr uint64_t kFiles = 1'000'000;
  explicit Tree(uint64_t entries) : mounted_(true, nullptr, uint64_t{1} << 30), entries_(entries) {
    for (uint64_t i = 0; i < kFiles; ++i) {
      if (i % entries == 0) directories_.push_back(mounted_.directory(fmt::format("d{}", i)));
      const InodeId made =
          mounted_->create(directories_.back(), name(i), node(S_IFREG | 0644)).value().id;
      (void)mounted_->forget(made, 1);
    }
  }
  void lookup(uint64_t i) {
    const auto found = mounted_->lookup(directory(i), name(i));
    if (!found.ok()) std::abort();
    (void)mounted_->forget(found->id, 1);
  }
  void unlink(uint64_t i) {
    if (!mounted_->unlink(directory(i), name(i)).ok()) std::abort();
  }
  static std::vector<uint32_t> any_order() {
    std::vector<uint32_t> order(kFiles);
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::shuffle(order, std::minstd_rand(1));
    return order;
  }

 private:
  static std::string name(uint64_t i) { return fmt::format("a-file-{:07}", i); }
  InodeId directory(uint64_t i) const { return directories_[i / entries_]; }
  Mounted mounted_;
  uint64_t entries_;
  std::vector<InodeId> directories_;
};

void measure_among(benchmark::State& state, void (Tree::*operation)(uint64_t)) {
  Tree tree(static_cast<uint64_t>(state.range(0)));
  const std::vector<uint32_t> order = Tree::any_order();
  for (const uint32_t i : order) tree.lookup(i);  // each directory has its index in memory
  size_t next = 0;
  for (auto _ : state) (tree.*operation)(order[next++]);
  state.SetItemsProcessed(state.iterations());
}
void LookupAmong(benchmark::State& state) {
  measure_among(state, &Tree::lookup);
}
void UnlinkAmong(benchmark::State& state) {
  measure_among(state, &Tree::unlink);
}

// A step of the mixed work over `kBatch` files: creates, appends, renames over, chmods, unlinks.
class Mix {
 public:
  explicit Mix(Mounted& mounted) : mounted_(mounted), files_(mounted, 0) { files_.create_all(); }

  void step() {
    const size_t i = random_() % kBatch;
    switch (random_() % 10) {
      case 0:
      case 1:
      case 2:
        files_.unlink(i), files_.forget(i), files_.create(i);
        break;
      case 3:
        chmod(i);
        break;
      default:
        append(i);
        break;
    }
  }

 private:
  void chmod(size_t i) {
    AttributeChange change;
    change.mode = random_() & 0777;
    (void)mounted_->set_attributes(files_.id(i), change);
  }
  // 4 to 64 KiB at the end, and the commit an fsync or the timer would make.
  void append(size_t i) {
    const InodeId id = files_.id(i);
    const Attributes now = mounted_->attributes(id).value();
    const uint64_t blocks = 1 + random_() % 16;
    const auto run = mounted_->blocks().reserve(blocks, kDefaultPStream, std::nullopt);
    if (!run.ok()) std::abort();
    WriteResult result;
    result.epoch = 1;
    result.end_offset = now.size + run->count * kBlockSize;
    result.added.push_back({FileBlock{now.size / kBlockSize}, run->first, run->count, {}});
    for (uint64_t k = 0; k < run->count; ++k) {
      result.checksums.push_back({BlockNo{run->first.value + k}, static_cast<uint32_t>(random_())});
    }
    if (!mounted_->finish_write(id, result).ok()) std::abort();
    if (!mounted_->commit_inode(id, 1).ok()) std::abort();
  }

  Mounted& mounted_;
  Files files_;
  std::minstd_rand random_{1};
};

// Words programmed by the mixed work, with a checkpoint each 256 operations.
void MixedWords(benchmark::State& state) {
  constexpr int64_t kCheckpointEvery = 256;
  Mounted mounted(false);
  Mix mix(mounted);
  mounted->journal().checkpoint();
  const MetadataWords words_before = mounted->metadata_words();
  const JournalStats before = mounted.commits();
  int64_t steps = 0;
  for (auto _ : state) {
    mix.step();
    if (++steps % kCheckpointEvery == 0) mounted->journal().checkpoint();
  }
  mounted->journal().checkpoint();
  const JournalStats now = mounted.commits();
  const MetadataWords words_after = mounted->metadata_words();
  const auto words = static_cast<double>(words_after.programmed - words_before.programmed);
  state.counters["words"] = words / static_cast<double>(steps);
  state.counters["words_ratio"] =
      words / static_cast<double>(words_after.of_blocks - words_before.of_blocks);
  state.counters["checkpoint_words_ratio"] =
      words / static_cast<double>(now.checkpoint_block_words - before.checkpoint_block_words);
}

// The floor of "2 threads": the time in which two cores hand a line to each other and back.
void LineTravel(benchmark::State& state) {
  alignas(kLineSize) std::atomic<uint64_t> turn = 0;
  const auto hand_over = [&](uint64_t mine) {
    while (turn.load(std::memory_order_acquire) != mine) {
    }
    turn.store(mine + 1, std::memory_order_release);
  };
  const auto rounds = static_cast<uint64_t>(state.max_iterations);
  std::thread other([&] {
    for (uint64_t round = 0; round < rounds; ++round) hand_over(2 * round + 1);
  });
  uint64_t next = 0;
  for (auto _ : state) {
    hand_over(next);
    next += 2;
  }
  other.join();
  state.SetItemsProcessed(static_cast<int64_t>(next));
}

// The part of a mount after a crash that depends on the size of a full intent log.
void OpenIntentLog(benchmark::State& state) {
  const auto region = pmem::make_memory_region(kMetaBytes, pmem::MetaClass::kPersistent);
  populate(*region);
  FormatOptions options;
  options.data_blocks = kDataBlocks;
  options.intent_log_bytes = 64 << 20;
  const Superblock super = plan_format(kMetaBytes, pmem::MetaClass::kPersistent, options).value();
  if (!format(*region, super, system_clock().now()).ok()) std::abort();
  const Geometry geometry = Geometry::from(super).value();
  const auto log = IntentLog::open(*region, geometry).value();
  log->start();
  std::vector<std::byte> block(kBlockSize);
  for (uint64_t number = 0;; ++number) {
    const auto batch = log->begin(1);
    if (batch == nullptr) break;
    std::ranges::fill(block, static_cast<std::byte>(number % 251 + 1));
    batch->append({{}, BlockNo{number}, {}, block});
    region->fence(batch->flushed());
    batch->keep();
  }
  for (auto _ : state) {
    const auto found = IntentLog::open(*region, geometry);
    if (!found.ok() || (*found)->entries_found() == 0) std::abort();
  }
}

// On memory, then on the media that pmem/latency_region.h knows, which are slower by far.
#define SFS_OPERATION(name)                                                           \
  BENCHMARK_CAPTURE(name, memory, nullptr)->ThreadRange(1, 2)->UseRealTime();         \
  BENCHMARK_CAPTURE(name, apart, nullptr, Mounts::kApart)->Threads(2)->UseRealTime(); \
  BENCHMARK_CAPTURE(name, pram, &pmem::kPram)->Iterations(1000)->UseRealTime();       \
  BENCHMARK_CAPTURE(name, optane, &pmem::kOptane)->Iterations(kBatch)->UseRealTime()
SFS_OPERATION(Create);
SFS_OPERATION(Lookup);
SFS_OPERATION(Rename);
SFS_OPERATION(Chmod);
SFS_OPERATION(Unlink);
#undef SFS_OPERATION
BENCHMARK(LookupAmong)->Arg(100)->Arg(1'000'000)->Iterations(200'000);
BENCHMARK(UnlinkAmong)->Arg(100)->Arg(1'000'000)->Iterations(200'000);
BENCHMARK(OpenIntentLog);
BENCHMARK(MixedWords)->Iterations(1 << 16);
BENCHMARK(LineTravel)->Iterations(1 << 17)->UseRealTime();

}  // namespace
}  // namespace streamfs::meta
