#include "lab/figures/device_run.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "lab/replay/replay.h"
#include "lab/replay/workload.h"
#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"
#include "ssd/presets.h"

namespace streamfs::lab::figures {

namespace {

Result<ssd::Geometry> device_of(const DeviceRun& run) {
  SFS_ASSIGN(ssd::GeometryRequest request, ssd::find_preset(run.preset));
  SFS_TRY(ssd::scale_down(request, fmt::format("1/{}", run.scale)));
  if (run.alter) run.alter(request);
  return ssd::plan_geometry(request);
}

}  // namespace

Result<uint64_t> device_pages(const DeviceRun& run) {
  SFS_ASSIGN(const ssd::Geometry device, device_of(run));
  return device.user_pages;
}

Result<uint32_t> pages_per_block(const DeviceRun& run) {
  SFS_ASSIGN(const ssd::Geometry device, device_of(run));
  return device.pages_per_block;
}

Result<ReplayResult> run_on_device(const DeviceRun& run) {
  SFS_ASSIGN(const ssd::Geometry device, device_of(run));
  const double pages = run.fill * device.user_pages;
  const GeneratorOptions made{.pages = static_cast<uint32_t>(pages),
                              .writes = static_cast<uint64_t>(run.capacities * device.user_pages),
                              .seed = run.seed,
                              .read_share = run.read_share};
  SFS_ASSIGN(std::unique_ptr<OpSource> source,
             run.source ? run.source(made) : make_generator(run.workload, made));
  SFS_ASSIGN(Workload workload, Workload::survey(std::move(source)));
  ReplayOptions options;
  options.placement = run.placement;
  options.policy.streams = run.streams;
  options.policy.scale = run.full_size ? 1 : run.scale;
  options.policy.pages_per_block = device.pages_per_block;
  options.device = device;
  options.prefill = {.share = run.prefill, .tagged = false};
  options.warmup = run.warmup;
  options.write_buffers = run.write_buffers;
  options.policy.gc_mode = run.gc_mode;
  options.sample = run.sample;
  return replay(workload, options);
}

}  // namespace streamfs::lab::figures
