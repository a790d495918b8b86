// Runs a workload on a preset device, smaller by `scale`, under one placement. The figures of
// stream devices consist of such runs.
// Thread safety: pure; may run beside others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "lab/replay/replay.h"
#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"

namespace streamfs::lab::figures {

using MakeSource = std::function<Result<std::unique_ptr<OpSource>>(const GeneratorOptions&)>;

struct DeviceRun {
  std::string preset = {};
  uint32_t scale = 1;
  std::function<void(ssd::GeometryRequest&)> alter = {};  // changes the preset, after `scale`
  std::string workload = {};
  // Makes a workload that has no name, in place of `workload`.
  MakeSource source = {};
  double fill = 1;        // share of the device that the workload writes to
  double capacities = 8;  // to be written, without the prefill
  double read_share = 0;  // of the pages moved
  uint64_t seed = 1;
  std::string placement = {};
  uint32_t streams = 0;    // 0: as many as the placement has by itself
  bool full_size = false;  // the placement's sizes in bytes are not scaled with the device
  double prefill = 0.9;    // share of the workload's pages written before it, in order, untagged
  uint32_t write_buffers = 0;               // ReplayOptions::write_buffers
  double warmup = 0;                        // share of the workload's writes before counting starts
  std::optional<ssd::GcMode> gc_mode = {};  // for placements that a host runs; else each one's own
  std::function<void(const ssd::Counters&)> sample = {};  // ReplayOptions::sample
};

// Returns the host's pages of the device. Errors: EINVAL for an unknown preset, or a device that
// cannot exist at this scale.
Result<uint64_t> device_pages(const DeviceRun& run);

// Returns the pages of an erase block. Errors: those of device_pages().
Result<uint32_t> pages_per_block(const DeviceRun& run);

// Errors: those of device_pages(), of the workload and of replay().
Result<ReplayResult> run_on_device(const DeviceRun& run);

}  // namespace streamfs::lab::figures
