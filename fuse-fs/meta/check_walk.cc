// The scan: its chunks, the threads that share them, and what they find together.
#include "fuse-fs/meta/check_walk.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kChunksPerThread = 64;  // below that a thread costs more than it helps

}  // namespace

void InodeTable::add_unit(uint64_t unit) {
  units.push_back(geometry.unit_offset(unit));
  first_slot[unit] = static_cast<uint32_t>(units.size());
  const size_t slots = units.size() * kInodesPerUnit;
  entry.resize(slots), names.resize(slots), subdirectories.resize(slots), flags.resize(slots);
}

std::optional<size_t> InodeTable::slot(InodeId id) const {
  if (id.value >= geometry.meta_size() / kCellSize) return std::nullopt;
  const auto unit = geometry.unit_of(inode_offset(id));
  if (!unit || first_slot[*unit] == 0) return std::nullopt;
  return size_t{first_slot[*unit] - 1} * kInodesPerUnit + id.value % kInodesPerUnit;
}

size_t CheckWalk::known_slot(InodeId id) const {
  const auto slot = inodes_.slot(id);
  if (!slot) assertion_failed("an inode in a unit that was added", __FILE__, __LINE__);
  return *slot;
}

// ---- Chunks and threads

CheckWalk::CheckWalk(const pmem::Region& region, const Geometry& geometry,
                     const CheckOptions& options, Units chained)
    : region_(region),
      geometry_(geometry),
      options_(options),
      root_(geometry.super().root_inode),
      chained_(std::move(chained)),
      kind_(round_up(geometry.heap_units(), kWordSize)),
      claimed_(geometry.heap_units()),
      owned_(div_round_up(geometry.data_blocks(), 64)),
      inodes_(geometry) {
  uint64_t inode_units = 0;
  for (uint64_t unit = 0; unit < geometry.heap_units(); unit += kWordSize) {
    const uint64_t word = region.load(geometry.region_offset(RegionKind::kHeapMap, unit));
    for (uint64_t i = 0; i < kWordSize; ++i) {
      kind_[unit + i] = static_cast<uint8_t>(word >> i * 8);
      inode_units += kind_[unit + i] == static_cast<uint8_t>(UnitKind::kInodes) ? 1 : 0;
    }
  }
  kind_.resize(geometry.heap_units());
  const size_t slots = inode_units * kInodesPerUnit;
  inodes_.units.reserve(inode_units);
  inodes_.entry.reserve(slots), inodes_.names.reserve(slots);
  inodes_.subdirectories.reserve(slots), inodes_.flags.reserve(slots);
}

// Runs `work` once for each chunk, on as many threads as the chunks are worth. Errors: ECANCELED.
Result<void> CheckWalk::for_chunks(int pass, uint64_t count,
                                   const std::function<void(uint64_t, CheckScan&)>& work) {
  const uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const uint64_t threads = options_.threads != 0
                               ? options_.threads
                               : std::clamp<uint64_t>(count / kChunksPerThread, 1, cores);
  std::atomic<uint64_t> next{0};
  const auto cancelled = [&] { return options_.cancelled && options_.cancelled->load(); };
  const auto work_on = [&](bool tell) {
    CheckScan scan(*this);
    for (uint64_t chunk = next++; chunk < count && !cancelled(); chunk = next++) {
      work(chunk, scan);
      const uint64_t given = next;
      if (tell && options_.progress && given < count) options_.progress(pass, given, count);
    }
  };
  std::vector<std::thread> others;
  for (uint64_t i = 1; i < threads; ++i) others.emplace_back(work_on, false);
  work_on(true);
  for (std::thread& other : others) other.join();
  if (cancelled()) return Error{ECANCELED, "cancelled"};
  if (options_.progress) options_.progress(pass, count, count);
  return {};
}

Result<void> CheckWalk::scan() {
  for (uint64_t unit = 0; unit < geometry_.heap_units(); ++unit) {
    if (kind_[unit] != static_cast<uint8_t>(UnitKind::kInodes)) continue;
    if (!chained_.contains(unit)) inodes_.add_unit(unit);
  }
  const uint64_t units = geometry_.heap_units();
  std::vector<Findings> chunks(div_round_up(units, kUnitsPerChunk));
  SFS_TRY(for_chunks(1, chunks.size(), [&](uint64_t chunk, CheckScan& scan) {
    const uint64_t end = std::min(units, (chunk + 1) * kUnitsPerChunk);
    for (uint64_t unit = chunk * kUnitsPerChunk; unit < end; ++unit)
      scan.scan_unit(unit, chunks[chunk]);
  }));
  collect(chunks);
  return {};
}

namespace {

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::move_iterator(from.begin()), std::move_iterator(from.end()));
}

}  // namespace

void CheckWalk::collect(std::vector<Findings>& chunks) {
  for (Findings& chunk : chunks) {
    append(found_.said, chunk.said);
    append(found_.unsound, chunk.unsound);
    append(found_.strays, chunk.strays);
    append(found_.not_empty, chunk.not_empty);
    append(found_.repairs.lost, chunk.repairs.lost);
    for (const auto& [id, fix] : chunk.repairs.images) found_.repairs.images[id].add(fix);
    found_.inodes += chunk.inodes;
    for (const auto& [unit, kind] : chunk.repairs.units) {
      found_.repairs.units[unit] = kind;
      kind_[unit] = static_cast<uint8_t>(kind);
    }
    found_.directories += chunk.directories;
    found_.files += chunk.files;
    found_.others += chunk.others;
    found_.blocks += chunk.blocks;
    found_.units += chunk.units;
    found_.blind |= chunk.blind;
    found_.blocks_conflict |= chunk.blocks_conflict;
  }
}

}  // namespace streamfs::meta
