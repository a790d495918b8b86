// The metadata engine with many inodes and without FUSE: what a mount after a cut costs, what a
// check of everything costs, and whether as many files fit as mkfs says. META is a file, best in
// /dev/shm; there is no data device. Prints one line of JSON.
//   meta_scale --meta /dev/shm/meta --inodes 10000000
//   meta_scale --meta /dev/shm/meta --fit 1000000
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"

namespace {

using namespace streamfs;        // NOLINT(google-build-using-namespace): a program's own file
using namespace streamfs::meta;  // NOLINT(google-build-using-namespace)

constexpr uint64_t kFilesPerDirectory = 1000;
constexpr int kRounds = 15;
constexpr int kInTheRing = 800;  // creations not home yet at the cut: a ring nearly full

template <typename T>
T need(Result<T> result) {
  if (!result.ok()) {
    fmt::print(stderr, "meta_scale: {}\n", result.error().message());
    std::exit(1);
  }
  return std::move(result).value();
}
void need(const Result<void>& result) {
  if (result.ok()) return;
  fmt::print(stderr, "meta_scale: {}\n", result.error().message());
  std::exit(1);
}

CreateRequest node(uint32_t mode) {
  CreateRequest request;
  request.mode = mode;
  return request;
}

double ms_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// A filesystem made and filled through the engine: files of one block in directories of 1000.
class Filler {
 public:
  Filler(const std::string& path, const FormatOptions& options)
      : size_(meta_size_max(options)), region_(need(pmem::open_region(path, of_size(size_)))) {
    super_ = need(plan_format(size_, region_->meta_class(), options));
    need(format(*region_, super_, system_clock().now()));
    engine_ = need(Engine::open(*region_, super_, system_clock(),
                                {.read_only = false, .start_background = false}));
  }
  const Superblock& super() const { return super_; }
  uint64_t made() const { return made_; }

  // Creates one more file, in a new directory if the last one is full. Errors: ENOSPC if META is
  // full.
  Result<void> add() {
    if (files_ % kFilesPerDirectory == 0) {
      const InodeId full = std::exchange(directory_, engine_->root());
      if (full != engine_->root() && full.value != 0) (void)engine_->forget(full, 1);
      SFS_ASSIGN(const Attributes made, engine_->create(engine_->root(), fmt::format("d{}", files_),
                                                        node(S_IFDIR | 0755)));
      directory_ = made.id;
      ++made_;
    }
    SFS_ASSIGN(const Attributes file, engine_->create(directory_, fmt::format("file-{:07}", files_),
                                                      node(S_IFREG | 0644)));
    ++files_;
    ++made_;
    const Result<void> written = write_block(file.id);
    (void)engine_->forget(file.id, 1);
    return written;
  }

  // Leaves the last creations in a ring, as a power cut would.
  void cut() {
    engine_->journal().checkpoint();
    for (int i = 0; i < kInTheRing; ++i) need(add());
    engine_.reset();
  }

 private:
  static pmem::OpenOptions of_size(uint64_t size) {
    pmem::OpenOptions options;
    options.size = size;
    options.create = true;
    return options;
  }

  Result<void> write_block(InodeId id) {
    SFS_ASSIGN(const BlockRun run, engine_->blocks().reserve(1, kDefaultPStream, std::nullopt));
    WriteResult result;
    result.epoch = 1;
    result.end_offset = kBlockSize;
    result.added.push_back({FileBlock{0}, run.first, 1, {}});
    result.checksums.push_back({run.first, 1});
    SFS_TRY(engine_->finish_write(id, result));
    return engine_->commit_inode(id, 1);
  }

  uint64_t size_;
  std::unique_ptr<pmem::Region> region_;
  Superblock super_{};
  std::unique_ptr<Engine> engine_;
  InodeId directory_;
  uint64_t files_ = 0, made_ = 0;
};

FormatOptions room_for(uint64_t inodes) {
  FormatOptions options;
  options.mean_file_bytes = 2 * kBlockSize;  // META shall be full before DATA is
  options.data_blocks = inodes * 2;
  options.random_seed = 1;
  return options;
}

// Mapped privately, so that each round finds what the cut left.
double mount_ms(const std::string& path) {
  pmem::OpenOptions options;
  options.read_only = true;
  std::unique_ptr<pmem::Region> region;
  std::unique_ptr<Engine> engine;
  return ms_of([&] {
    region = need(pmem::open_region(path, options));
    const Superblock super = need(load_superblock(*region, true));
    engine = need(Engine::open(*region, super, system_clock(),
                               {.read_only = false, .start_background = false}));
  });
}

double median_mount_ms(const std::string& path) {
  std::vector<double> rounds;
  rounds.reserve(kRounds);
  for (int i = 0; i < kRounds; ++i) rounds.push_back(mount_ms(path));
  return median(std::move(rounds));
}

struct Checked {
  double seconds, cpu;
  CheckReport report;
};

Checked check_once(const std::string& path) {
  pmem::OpenOptions options;
  options.read_only = true;
  const auto region = need(pmem::open_region(path, options));
  const Superblock super = need(load_superblock(*region, true));
  (void)need(recover_journal(*region, need(Geometry::from(super))));
  Checked out{};
  const double cpu = cpu_seconds();
  out.seconds = ms_of([&] { out.report = need(check(*region, super, {})); }) / 1000;
  out.cpu = cpu_seconds() - cpu;
  return out;
}

void remove_file(const std::string& path) {
  if (std::remove(path.c_str()) != 0 && errno != ENOENT) std::exit(1);
}

int many(const std::string& path, uint64_t inodes) {
  const FormatOptions options = room_for(inodes + 2 * kInTheRing + inodes / kFilesPerDirectory);
  {
    Filler empty(path, options);
  }
  const double fresh_ms = median_mount_ms(path);
  remove_file(path);
  {
    Filler(path, options).cut();
  }
  const double empty_ms = median_mount_ms(path);
  remove_file(path);
  double made_s = 0;
  {
    Filler filler(path, options);
    made_s = ms_of([&] {
               while (filler.made() + kInTheRing < inodes) need(filler.add());
               filler.cut();
             }) /
             1000;
  }
  const double full_ms = median_mount_ms(path);
  const Checked checked = check_once(path);
  remove_file(path);
  fmt::print(
      R"({{"inodes": {}, "meta_bytes": {}, "made_s": {:.3f}, "mount_fresh_ms": {:.3f}, )"
      R"("mount_empty_ms": {:.3f}, "mount_full_ms": {:.3f}, "check_s": {:.3f}, "check_cpu_s": {:.3f}, )"
      R"("problems": {}}})"
      "\n",
      checked.report.files + checked.report.directories, meta_size_max(options), made_s, fresh_ms,
      empty_ms, full_ms, checked.seconds, checked.cpu, checked.report.problems.size());
  return 0;
}

int fit(const std::string& path, uint64_t files) {
  const FormatOptions options = room_for(files);
  uint64_t said = 0, made = 0, bytes = 0;
  {
    Filler filler(path, options);
    said = inodes_possible(filler.super(), filler.super().meta_size);
    bytes = filler.super().meta_size;
    while (true) {
      const Result<void> added = filler.add();
      if (!added.ok() && added.error().code == ENOSPC) break;
      need(added);
    }
    made = filler.made();
  }
  remove_file(path);
  fmt::print(R"({{"planned": {}, "said": {}, "made": {}, "meta_bytes": {}}})"
             "\n",
             files, said, made, bytes);
  return 0;
}

// META bytes ÷ DATA bytes as mkfs plans them.
int plan(uint64_t data_bytes, uint64_t mean_file_bytes) {
  FormatOptions options;
  options.data_blocks = data_bytes / kBlockSize;
  options.mean_file_bytes = mean_file_bytes;
  const uint64_t meta = meta_size_max(options);
  const Superblock super = need(plan_format(meta, pmem::MetaClass::kPersistent, options));
  fmt::print(R"({{"meta_bytes": {}, "files": {}}})"
             "\n",
             meta, inodes_possible(super, super.meta_size));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The metadata engine with many inodes.", "meta_scale");
  std::string path;
  uint64_t inodes = 0, files = 0, data_bytes = 0, mean_file_bytes = 256 * 1024;
  app.add_option("--meta", path, "A file that does not exist; removed at the end");
  app.add_option("--inodes", inodes, "Make so many, then time mounts and a check");
  app.add_option("--fit", files, "Plan META for so many small files, then fill it");
  app.add_option("--plan", data_bytes, "What mkfs plans for DATA of so many bytes");
  app.add_option("--mean-file-size", mean_file_bytes, "For --plan, bytes");
  CLI11_PARSE(app, argc, argv);
  if (data_bytes != 0) return plan(data_bytes, mean_file_bytes);
  if (path.empty() || (inodes == 0) == (files == 0)) {
    fmt::print(stderr, "meta_scale: needs --plan, or --meta and one of --inodes and --fit\n");
    return 2;
  }
  return inodes != 0 ? many(path, inodes) : fit(path, files);
}
