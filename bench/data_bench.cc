// The filesystem's own cost on the data path: a device that does nothing, META in memory.
//   data_bench --benchmark_filter=Write
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/pair/format_pair.h"
#include "pmem/latency_region.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kBlocks = 1 << 18;  // 1 GiB

// Forgets all data but the label: reads give zeroes, so reading benches mount without verifying.
class NullDevice final : public blockdev::Device {
 public:
  NullDevice() {
    info_.kind = info_.path = info_.identity = "null";
    info_.capacity_blocks = kBlocks;
    info_.pstream_count = 8;
  }
  const blockdev::DeviceInfo& info() const override { return info_; }
  void write(BlockNo first, ConstBytes bytes, blockdev::WriteTag,
             blockdev::Completion done) override {
    if (first.value == 0) std::ranges::copy(bytes.first(kBlockSize), label_.begin());
    done({});
  }
  void read(BlockNo first, Bytes bytes, blockdev::Completion done) override {
    if (first.value == 0) std::ranges::copy(label_, bytes.begin());
    done({});
  }
  Result<void> flush() override { return {}; }
  Result<void> trim(BlockNo, uint64_t) override { return {}; }
  Result<blockdev::DeviceStats> stats() override { return blockdev::DeviceStats{}; }
  blockdev::Placement placement(PStreamId stream) const override { return {1, stream.value}; }

 private:
  blockdev::DeviceInfo info_;
  std::vector<std::byte> label_ = std::vector<std::byte>(kBlockSize);
};

struct Mounted {
  static constexpr uint64_t kMetaBytes = 64 << 20;
  explicit Mounted(uint64_t intent_log_bytes = 0, const pmem::LatencyModel* medium = nullptr) {
    pair::OpenPair pair;
    const pmem::MetaClass persistent = pmem::MetaClass::kPersistent;
    if (medium == nullptr)
      pair.region = pmem::make_memory_region(kMetaBytes, persistent);
    else
      pair.region = pmem::make_latency_region(kMetaBytes, persistent, *medium);
    region = pair.region.get();
    pair.device = std::make_unique<NullDevice>();
    meta::FormatOptions format;
    format.data_blocks = kBlocks;
    format.intent_log_bytes = intent_log_bytes;
    pair.super = pair::format_open_pair(*pair.region, *pair.device, format, system_clock()).value();
    pair.label = meta::make_label(pair.super).label;
    MountOptions options;
    options.verify_checksums = false;
    fs = std::move(FilesystemImpl::open(std::move(pair), options, system_clock(), true)).value();
    file = fs->create(fs->root(), "f", 0100644, 0, {}, {}).value().id;
  }
  pmem::Region* region;
  std::unique_ptr<FilesystemImpl> fs;
  InodeId file;
};

struct AlignedBuffer {
  explicit AlignedBuffer(size_t size)
      : memory(static_cast<std::byte*>(std::aligned_alloc(4096, size)), &std::free),
        bytes(memory.get(), size) {
    std::memset(memory.get(), 0x5a, size);
  }
  std::unique_ptr<std::byte, decltype(&std::free)> memory;
  Bytes bytes;
};

void overwrite(benchmark::State& state, size_t size, uint64_t span, bool aligned) {
  Mounted mounted;
  const AlignedBuffer buffer(size + 4096);
  const ConstBytes bytes = buffer.bytes.subspan(aligned ? 0 : 64, size);
  for (uint64_t at = 0; at < span; at += size) (void)mounted.fs->write(mounted.file, at, bytes);
  uint64_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(mounted.fs->write(mounted.file, at, bytes).ok());
    at = (at + size) % span;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(size));
}

void Overwrite4KiB(benchmark::State& state) {
  overwrite(state, 4096, 256 << 20, true);
}
void Overwrite4KiBUnaligned(benchmark::State& state) {
  overwrite(state, 4096, 256 << 20, false);
}
void Overwrite1MiB(benchmark::State& state) {
  overwrite(state, 1 << 20, 256 << 20, true);
}
void Overwrite1MiBUnaligned(benchmark::State& state) {
  overwrite(state, 1 << 20, 256 << 20, false);
}

// A file appended to until it is 512 MiB, then cut to nothing: allocation, commits and frees.
void append(benchmark::State& state, size_t size) {
  Mounted mounted;
  const AlignedBuffer buffer(size);
  uint64_t at = 0;
  for (auto _ : state) {
    if (!mounted.fs->write(mounted.file, at, buffer.bytes).ok()) state.SkipWithError("write");
    at += size;
    if (at >= (512 << 20)) {
      (void)mounted.fs->truncate(mounted.file, 0);
      (void)mounted.fs->sync();
      at = 0;
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(size));
}
void Append4KiB(benchmark::State& state) {
  append(state, 4096);
}
void Append1MiB(benchmark::State& state) {
  append(state, 1 << 20);
}

void Read(benchmark::State& state) {
  Mounted mounted;
  const AlignedBuffer buffer(1 << 20);
  for (uint64_t at = 0; at < (64 << 20); at += 1 << 20) {
    (void)mounted.fs->write(mounted.file, at, buffer.bytes);
  }
  const auto size = static_cast<size_t>(state.range(0));
  uint64_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(mounted.fs->read(mounted.file, at, buffer.bytes.first(size)).ok());
    at = (at + size) % (64 << 20);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(size));
}

void fsynced_append(benchmark::State& state, Mounted& mounted) {
  const AlignedBuffer buffer(4096);
  const uint64_t fences = mounted.region->counters().fences;
  uint64_t at = 0;
  for (auto _ : state) {
    // Each block has other words than its predecessor: META programs only words that change.
    std::memset(buffer.bytes.data(), static_cast<int>(at / 4096 % 251), buffer.bytes.size());
    (void)mounted.fs->write(mounted.file, at, buffer.bytes);
    if (!mounted.fs->fsync(mounted.file, true).ok()) state.SkipWithError("fsync");
    at = (at + 4096) % (256 << 20);
  }
  const auto fenced = static_cast<double>(mounted.region->counters().fences - fences);
  state.counters["fences"] = fenced / static_cast<double>(state.iterations());
}
void FsyncedAppend4KiB(benchmark::State& state) {
  Mounted mounted;
  fsynced_append(state, mounted);
}

// With an intent log, on DRAM or on a medium that takes so long to program a line. The medium
// programs one line at a time, so the time of the 64 lines of a block is an upper bound.
void IntentLoggedAppend4KiB(benchmark::State& state) {
  const auto line_ns = static_cast<uint64_t>(state.range(0));
  const pmem::LatencyModel medium{"lines", 0, line_ns, 0};
  Mounted mounted(Mounted::kMetaBytes / 16, line_ns == 0 ? nullptr : &medium);
  fsynced_append(state, mounted);
}

// A page's way through placement, the table only.
void RoutePage(benchmark::State& state) {
  Mounted mounted;
  const placement::Placement& placement = mounted.fs->placement();
  uint32_t offset = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(placement.route(VStreamId{7}, 256, offset++ % 256, false));
  }
}

void MeasureWrite(benchmark::State& state) {
  Mounted mounted;
  placement::Placement& placement = mounted.fs->placement();
  const auto pages = static_cast<uint32_t>(state.range(0));
  uint64_t block = 0;
  for (auto _ : state) {
    placement.wrote({VStreamId{7}, pages, 0, pages, BlockNo{block}}, PStreamId{1}, 1);
    block = (block + pages) % (kBlocks - 256);
  }
}

BENCHMARK(Overwrite4KiB);
BENCHMARK(Overwrite4KiBUnaligned);
BENCHMARK(Overwrite1MiB);
BENCHMARK(Overwrite1MiBUnaligned);
BENCHMARK(Append4KiB);
BENCHMARK(Append1MiB);
BENCHMARK(Read)->Arg(4096)->Arg(1 << 20);
BENCHMARK(FsyncedAppend4KiB);
BENCHMARK(IntentLoggedAppend4KiB)->Arg(0)->Arg(200)->Arg(500)->Arg(2000);
BENCHMARK(RoutePage);
BENCHMARK(MeasureWrite)->Arg(1)->Arg(256);

}  // namespace
}  // namespace streamfs::data
