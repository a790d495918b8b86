// fio4: four sequential-write jobs of lifetimes 1×, 10×, 33× and 55×, 128 KiB at a time, in
// parallel (Choi, multi-stream NVMe). The jobs have equal speed, so regions are in proportion to
// lifetimes. The source's six random-read jobs are left out, because they place no data. Each job
// has a tag.
#include <array>
#include <memory>

#include "lab/workload/generator.h"
#include "lab/workload/logs.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab {

std::unique_ptr<OpSource> make_fio4(const GeneratorOptions& options) {
  constexpr std::array<Job, 4> kJobs = {{{1, 0, 0}, {10, 1, 1}, {33, 2, 2}, {55, 3, 3}}};
  return std::make_unique<Logs>(options, kJobs, Turn::kRandom);
}

}  // namespace streamfs::lab
