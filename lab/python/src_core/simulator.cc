#include "lab/python/src_core/simulator.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/or_throw.h"
#include "base/result.h"
#include "base/wire/record_check.h"
#include "base/wire/telemetry.h"
#include "lab/placement/policy.h"
#include "lab/python/src_core/record_source.h"
#include "lab/replay/replay.h"
#include "lab/replay/workload.h"
#include "ssd/geometry.h"

namespace streamfs::lab::python {
namespace {

uint64_t pages_written(std::span<const wire::TelemetryRecord> records) {
  uint64_t pages = 0;
  for (const wire::TelemetryRecord& record : records) {
    const bool counts = believable(record, wire::kCapacityBlocksMax);
    if (counts && record.kind != wire::TelemetryKind::kTrim) pages += record.pages;
  }
  return pages;
}

}  // namespace

double waf_of(std::span<const wire::TelemetryRecord> records, const std::string& placement,
              uint32_t streams, std::span<const uint8_t> tags, const DeviceSettings& settings,
              std::span<const Release> releases) {
  if (placement.starts_with("tags") && tags.size() != pages_written(records)) {
    throw std::invalid_argument("tags: one is needed for each page written");
  }
  if (std::ranges::any_of(releases, [&](const Release& each) { return each.stream >= streams; })) {
    throw std::invalid_argument("releases: a stream number is out of range");
  }
  lab::ReplayOptions options;
  options.placement = placement;
  options.victim = settings.victim;
  options.spare = settings.spare;
  options.warmup = settings.warmup;
  options.policy.streams = streams;
  options.policy.pages_per_block = settings.block_pages;
  options.policy.gc_mode = or_throw(ssd::gc_mode_of(settings.gc_mode));
  auto workload =
      or_throw(lab::Workload::survey(std::make_unique<RecordSource>(records, tags, releases)));
  Result<lab::ReplayResult> replayed = lab::replay(workload, options);
  if (!replayed.ok() && replayed.error().code == ENOSPC) throw NoRoom(replayed.error().context);
  return or_throw(std::move(replayed)).waf();
}

}  // namespace streamfs::lab::python
