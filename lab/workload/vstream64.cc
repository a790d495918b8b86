// vstream64: 64 partitions (48 hot of 2 GB, 8 warm of 4 GB, 8 cold of 16 GB), each written from
// front to back and again, one 128 KiB write after the other, round robin (Yong 2021, vStream-FTL).
// Each partition has a vStream; there are three pStreams: hot, warm, cold.
#include <cstdint>
#include <memory>
#include <vector>

#include "lab/workload/generator.h"
#include "lab/workload/logs.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab {

std::unique_ptr<OpSource> make_vstream64(const GeneratorOptions& options) {
  std::vector<Job> jobs;
  for (uint16_t i = 0; i < 64; ++i) {
    const uint16_t heat = i < 48 ? 0 : i < 56 ? 1 : 2;
    jobs.push_back({heat == 0 ? 2u : heat == 1 ? 4u : 16u, i, heat});
  }
  return std::make_unique<Logs>(options, jobs, Turn::kRoundRobin);
}

}  // namespace streamfs::lab
