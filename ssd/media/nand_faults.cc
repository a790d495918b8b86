#include "ssd/media/nand_faults.h"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/mix.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kRate = 1'000'000'000;

uint64_t draw(uint64_t seed, uint64_t block, uint64_t erases, uint64_t what) {
  return mix64(mix64(mix64(seed + 0x9e3779b97f4a7c15) + block) + (erases << 32 | what)) % kRate;
}

}  // namespace

bool SeededFailures::program_fails(BlockIndex block, uint32_t erases, uint32_t wordline) {
  return draw(rates_.seed, block, erases, wordline) < rates_.program_per_billion;
}

bool SeededFailures::erase_fails(BlockIndex block, uint32_t erases) {
  return draw(rates_.seed, block, erases, UINT32_MAX) < rates_.erase_per_billion;
}

std::vector<BlockIndex> factory_bad_blocks(const Geometry& geometry) {
  std::vector<BlockIndex> blocks(geometry.blocks);
  std::iota(blocks.begin(), blocks.end(), BlockIndex{0});
  for (uint32_t i = 0; i < geometry.bad_blocks; ++i)
    std::swap(blocks[i], blocks[i + mix64(geometry.failures.seed + i) % (geometry.blocks - i)]);
  blocks.resize(geometry.bad_blocks);
  return blocks;
}

}  // namespace streamfs::ssd
