#include "emulator/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "emulator/counters.h"
#include "emulator/ftl/page_map.h"
#include "emulator/ftl/router.h"
#include "emulator/geometry.h"
#include "emulator/media/null_media.h"
#include "emulator/policy/placement/policy.h"
#include "emulator/policy/victim/registry.h"
#include "emulator/replay/workload.h"
#include "emulator/workload/facts.h"
#include "emulator/workload/op_source.h"

namespace streamfs::emulator {
namespace {

constexpr size_t kAhead = 16;

bool is_oracle(const std::string& placement) {
  return placement == "oracle" || placement == "oracle-host";
}

Result<Geometry> geometry_for(const WorkloadFacts& facts, const ReplayOptions& options,
                              uint16_t classes) {
  Geometry geometry;
  geometry.user_pages = facts.footprint_pages;
  geometry.pages_per_block = options.policy.pages_per_block;
  geometry.streams = classes;
  const uint64_t base = options.base_pages != 0 ? options.base_pages : facts.peak_live_pages;
  const auto wanted = static_cast<uint64_t>(
      std::ceil(static_cast<double>(base) * (1 + options.spare) / geometry.pages_per_block));
  const uint64_t blocks =
      options.physical_blocks != 0 ? options.physical_blocks : wanted + kReserveBlocks;
  if (facts.writes == 0) return Error{EINVAL, "the trace writes nothing"};
  if (geometry.pages_per_block == 0 || blocks * geometry.pages_per_block >= kNoPage)
    return Error{EINVAL, fmt::format("impossible geometry: {} blocks of {} pages", blocks,
                                     geometry.pages_per_block)};
  geometry.blocks = static_cast<uint32_t>(blocks);
  return geometry;
}

// Counters at the write where counting starts.
struct Baseline {
  uint64_t at_write;
  Counters counters;
};

template <typename Ftl>
int run_batch(Ftl& ftl, PlacementPolicy& policy, const Workload& workload,
              std::span<const PageOp> ops, uint64_t& index, const Counters& counters,
              Baseline& baseline) {
  for (size_t i = 0; i < ops.size(); ++i) {
    const PageOp& op = ops[i];
    ftl.prefetch(ops[std::min(i + kAhead, ops.size() - 1)].page);
    policy.prefetch(ops[std::min(i + kAhead, ops.size() - 1)].page);
    ftl.prefetch_block(ops[std::min(i + kAhead / 4, ops.size() - 1)].page);
    if (op.is_trim) {
      ftl.trim(op.page);
      policy.trimmed(op.page, index);
      continue;
    }
    if (index == baseline.at_write) baseline.counters = counters;
    const PageWrite write{.page = op.page,
                          .pstream = op.pstream,
                          .vstream = op.vstream,
                          .index = index,
                          .death = workload.death_of(index),
                          .request_first = op.request_first,
                          .request_pages = op.request_pages,
                          .context = op.context,
                          .address = op.address,
                          .prefill = index < workload.prefill_writes()};
    const FrontierId frontier = policy.for_write(write, index);
    if (const int error = ftl.write(op.page, 1, frontier, op.vstream, nullptr)) return error;
    ++index;
  }
  return 0;
}

template <typename Ftl>
Result<void> run_ops(Ftl& ftl, PlacementPolicy& policy, Workload& workload,
                     const Progress& progress, const Counters& counters, Baseline& baseline) {
  uint64_t index = 0;
  SFS_TRY(workload.rewind());
  for (;;) {
    SFS_ASSIGN(const std::span<const PageOp> batch, workload.next());
    if (batch.empty()) return {};
    if (const int error = run_batch(ftl, policy, workload, batch, index, counters, baseline))
      return Error{error};
    if (progress) progress(index, workload.facts().writes);
  }
}

template <typename Victim>
Result<ReplayResult> run(Workload& workload, const ReplayOptions& options, PlacementPolicy& policy,
                         const Geometry& geometry, Victim& victim) {
  const WorkloadFacts& facts = workload.facts();
  NullMedia media;
  PolicyRouter router(policy);
  Counters counters;
  LiveCounts live;
  PageMap<NullMedia, Victim, PolicyRouter> ftl(geometry, media, victim, router, counters, live);
  const uint64_t prefill = workload.prefill_writes();
  const auto own = static_cast<double>(facts.writes - prefill);
  Baseline baseline{prefill + static_cast<uint64_t>(options.warmup * own), {}};
  if (const Result<void> done =
          run_ops(ftl, policy, workload, options.progress, counters, baseline);
      !done.ok()) {
    if (done.error().code != ENOSPC) return done.error();
    return Error{ENOSPC, fmt::format("{} live pages on {} physical ones", live.live_pages,
                                     geometry.physical_pages())};
  }
  SFS_TRY(policy.status());
  ReplayResult result;
  result.placement = options.placement;
  result.victim = options.victim;
  if (is_oracle(options.placement)) result.edges = options.policy.edges;
  result.counters = difference(counters, baseline.counters);
  result.classes = policy.classes();
  result.physical_pages = geometry.physical_pages();
  result.peak_live_pages = live.peak_live_pages;
  result.footprint_pages = facts.footprint_pages;
  return result;
}

Result<ReplayResult> replay_once(Workload& workload, const ReplayOptions& options) {
  SFS_ASSIGN(const std::unique_ptr<PlacementPolicy> policy,
             make_placement(options.placement, options.policy, workload.facts()));
  SFS_TRY(check_victim(options.victim, options.victim_options));
  SFS_ASSIGN(const Geometry geometry, geometry_for(workload.facts(), options, policy->classes()));
  return with_victim<Result<ReplayResult>>(
      options.victim, geometry, options.victim_options,
      [&](auto& victim) { return run(workload, options, *policy, geometry, victim); },
      AllVictims{});
}

}  // namespace

double ReplayResult::waf() const {
  const auto host = static_cast<double>(counters.host_pages);
  return host == 0 ? 0 : 1 + static_cast<double>(counters.gc_pages + counters.pad_pages) / host;
}

double ReplayResult::effective_spare() const {
  return static_cast<double>(physical_pages) / static_cast<double>(peak_live_pages) - 1;
}

Result<ReplayResult> replay(Workload& workload, const ReplayOptions& options) {
  workload.set_prefill(options.prefill);
  if (needs_future(options.placement)) SFS_TRY(workload.annotate(options.progress));
  ReplayOptions one = options;
  one.policy.edges = options.edges;
  if (!is_oracle(options.placement) || options.edges != "best") return replay_once(workload, one);
  Result<ReplayResult> best = Error{EINVAL};
  for (const char* edges : {"log2", "quantile", "threshold"}) {
    one.policy.edges = edges;
    Result<ReplayResult> result = replay_once(workload, one);
    if (!result.ok()) return result;
    if (!best.ok() || result->waf() < best->waf()) best = std::move(result);
  }
  return best;
}

nlohmann::json to_json(const ReplayResult& result) {
  const Counters& c = result.counters;
  nlohmann::json json = {{"placement", result.placement},
                         {"victim", result.victim},
                         {"waf", result.waf()},
                         {"host_pages", c.host_pages},
                         {"nand_pages", c.host_pages + c.gc_pages + c.pad_pages},
                         {"gc_pages", c.gc_pages},
                         {"pad_pages", c.pad_pages},
                         {"erases", c.erases},
                         {"effective_spare", result.effective_spare()},
                         {"physical_pages", result.physical_pages},
                         {"peak_live_pages", result.peak_live_pages},
                         {"footprint_pages", result.footprint_pages},
                         {"per_stream", nlohmann::json::array()}};
  if (!result.edges.empty()) json["edges"] = result.edges;
  for (uint16_t i = 0; i < result.classes; ++i)
    json["per_stream"].push_back({{"stream", i},
                                  {"host_pages", c.streams[i].host_pages},
                                  {"gc_pages", c.streams[i].gc_pages}});
  return json;
}

}  // namespace streamfs::emulator
