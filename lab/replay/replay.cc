#include "lab/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "lab/placement/policy.h"
#include "lab/replay/timed_requests.h"
#include "lab/replay/workload.h"
#include "lab/workload/facts.h"
#include "lab/workload/op_source.h"
#include "ssd/counters.h"
#include "ssd/ftl/flash_watcher.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/latency.h"
#include "ssd/media/null_media.h"
#include "ssd/stats.h"
#include "ssd/victim/registry.h"

namespace streamfs::lab {
namespace {

constexpr size_t kAhead = 16;

bool is_oracle(const std::string& placement) {
  return placement == "oracle" || placement == "oracle-host";
}

// Returns the geometry with a frontier for each class. Errors: EINVAL, the device could not collect
// its garbage any more.
Result<ssd::Geometry> device_with(ssd::Geometry geometry, const WorkloadFacts& facts,
                                  uint16_t classes) {
  if (facts.footprint_pages > geometry.user_pages)
    return Error{EINVAL, fmt::format("impossible geometry: {} pages on a device of {}",
                                     facts.footprint_pages, geometry.user_pages)};
  geometry.streams = classes;
  const uint64_t needed = div_round_up(geometry.user_pages, geometry.pages_per_block) +
                          geometry.low_water + classes + 1;
  if (geometry.blocks < needed)
    return Error{EINVAL, fmt::format("impossible geometry: {} blocks of {} pages; the data, {} "
                                     "open blocks and the reserve need {}",
                                     geometry.blocks, geometry.pages_per_block, classes, needed)};
  return geometry;
}

Result<ssd::Geometry> geometry_for(const WorkloadFacts& facts, const ReplayOptions& options,
                                   uint16_t classes) {
  if (options.device) return device_with(*options.device, facts, classes);
  ssd::Geometry geometry;
  geometry.user_pages = facts.footprint_pages;
  geometry.pages_per_block = options.policy.pages_per_block;
  geometry.streams = classes;
  const uint64_t base = options.base_pages != 0 ? options.base_pages : facts.peak_live_pages;
  const auto wanted = static_cast<uint64_t>(
      std::ceil(static_cast<double>(base) * (1 + options.spare) / geometry.pages_per_block));
  const uint64_t blocks =
      options.physical_blocks != 0 ? options.physical_blocks : wanted + ssd::kReserveBlocks;
  if (facts.writes == 0) return Error{EINVAL, "the trace writes nothing"};
  if (geometry.pages_per_block == 0 || blocks * geometry.pages_per_block >= ssd::kNoPage)
    return Error{EINVAL, fmt::format("impossible geometry: {} blocks of {} pages", blocks,
                                     geometry.pages_per_block)};
  geometry.blocks = static_cast<uint32_t>(blocks);
  if (options.cell) {
    SFS_ASSIGN(geometry.nand, ssd::plain_shape(geometry.pages_per_block, *options.cell));
    geometry.wordline_pages = geometry.nand.wordline_pages();
  }
  return geometry;
}

// The frontiers that have a write buffer, in the order of their last write.
class WriteBuffers {
 public:
  explicit WriteBuffers(size_t count) : count_(count) {}

  // Notes a write, and returns the frontier that loses its buffer for it.
  std::optional<ssd::FrontierId> written(ssd::FrontierId frontier) {
    if (count_ == 0) return std::nullopt;
    std::erase(recent_, frontier);
    recent_.push_back(frontier);
    if (recent_.size() <= count_) return std::nullopt;
    const ssd::FrontierId oldest = recent_.front();
    recent_.erase(recent_.begin());
    return oldest;
  }

 private:
  const size_t count_;
  std::vector<ssd::FrontierId> recent_;
};

// A pass of a workload over a device.
template <typename Ftl>
class Pass {
 public:
  // `requests` is null if times are not asked for.
  Pass(Ftl& ftl, PlacementPolicy& policy, ssd::FlashWatcher* watcher, Workload& workload,
       ssd::Counters& counters, TimedRequests* requests, uint64_t baseline_at,
       uint32_t write_buffers)
      : ftl_(ftl),
        policy_(policy),
        watcher_(watcher),
        workload_(workload),
        counters_(counters),
        requests_(requests),
        baseline_at_(baseline_at),
        buffers_(write_buffers) {}

  Result<void> run(const ReplayOptions& options) {
    SFS_TRY(workload_.rewind());
    for (;;) {
      SFS_ASSIGN(const std::span<const PageOp> batch, workload_.next());
      if (batch.empty()) break;
      if (const int error = run_batch(batch)) return Error{error};
      if (options.progress) options.progress(index_, workload_.facts().writes);
      if (options.sample) options.sample(counters_);
    }
    if (requests_ != nullptr) requests_->end();
    return {};
  }

  // Returns the counts since the write at which counting starts.
  ssd::Counters counted() const { return ssd::difference(counters_, baseline_); }

 private:
  int run_batch(std::span<const PageOp> ops) {
    for (size_t i = 0; i < ops.size(); ++i) {
      const PageOp& op = ops[i];
      ftl_.prefetch(ops[std::min(i + kAhead, ops.size() - 1)].page);
      policy_.prefetch(ops[std::min(i + kAhead, ops.size() - 1)].page);
      ftl_.prefetch_block(ops[std::min(i + kAhead / 4, ops.size() - 1)].page);
      if (op.kind == OpKind::kWrite) {
        if (const int error = write(op)) return error;
      } else if (op.kind == OpKind::kTrim) {
        dies(op.page);
        ftl_.trim(op.page);
        policy_.trimmed(op.page, index_);
      } else if (op.kind == OpKind::kRelease) {
        ftl_.seal(op.pstream);
      } else if (requests_ != nullptr) {
        requests_->read(op, ftl_.location(op.page));
        ++counters_.read_pages;
      }
    }
    return 0;
  }

  void dies(ssd::Lpn page) {
    if (watcher_ != nullptr && ftl_.live(page)) watcher_->dies(ftl_.location(page), index_);
  }

  int write(const PageOp& op) {
    if (index_ == baseline_at_) baseline_ = counters_;
    if (requests_ != nullptr) requests_->write(op);
    const PageWrite write{.page = op.page,
                          .pstream = op.pstream,
                          .vstream = op.vstream,
                          .index = index_,
                          .death = workload_.death_of(index_),
                          .request_first = op.request_first,
                          .request_pages = op.request_pages,
                          .context = op.context,
                          .address = op.address,
                          .prefill = index_ < workload_.prefill_writes()};
    const ssd::FrontierId frontier = policy_.for_write(write, index_);
    dies(op.page);
    if (const auto evicted = buffers_.written(frontier))
      if (const int error = ftl_.commit(*evicted)) return error;
    if (const int error = ftl_.write(op.page, 1, frontier, op.vstream, nullptr)) return error;
    ++index_;
    return 0;
  }

  Ftl& ftl_;
  PlacementPolicy& policy_;
  ssd::FlashWatcher* const watcher_;
  Workload& workload_;
  ssd::Counters& counters_;
  TimedRequests* const requests_;
  const uint64_t baseline_at_;
  WriteBuffers buffers_;
  uint64_t index_ = 0;
  ssd::Counters baseline_;
};

template <typename Victim>
Result<ReplayResult> run(Workload& workload, const ReplayOptions& options, PlacementPolicy& policy,
                         const ssd::Geometry& geometry, Victim& victim) {
  const WorkloadFacts& facts = workload.facts();
  ssd::FlashWatcher* const watcher = policy.watch(geometry);
  PolicyRouter router(policy, watcher);
  ssd::Counters counters;
  ssd::LiveCounts live;
  std::optional<ssd::LatencyModel> latency;
  const bool timed = options.cell || options.device;
  if (timed) {
    ssd::Timing timing = ssd::timing_of(geometry.nand.cell);
    timing.load = options.load;
    latency.emplace(timing, geometry, counters);
  }
  std::optional<TimedRequests> requests;
  if (latency) requests.emplace(*latency);
  ssd::NullMedia media(latency ? &*latency : nullptr, watcher);
  ssd::PageMap<ssd::NullMedia, Victim, PolicyRouter> ftl(geometry, media, victim, router, counters,
                                                         live);
  const uint64_t prefill = workload.prefill_writes();
  const auto own = static_cast<double>(facts.writes - prefill);
  Pass pass(ftl, policy, watcher, workload, counters, requests ? &*requests : nullptr,
            prefill + static_cast<uint64_t>(options.warmup * own), options.write_buffers);
  if (const Result<void> done = pass.run(options); !done.ok()) {
    if (done.error().code != ENOSPC) return done.error();
    return Error{ENOSPC,
                 fmt::format("{}: {} live pages on {} blocks of {} pages, of which up to {} are "
                             "open, leave no room for garbage collection; use fewer streams, "
                             "smaller blocks, more spare, or another --gc",
                             options.placement, live.live_pages, geometry.blocks,
                             geometry.pages_per_block, geometry.streams)};
  }
  SFS_TRY(policy.status());
  ReplayResult result;
  result.placement = options.placement;
  result.victim = options.victim;
  if (is_oracle(options.placement)) result.edges = options.policy.edges;
  result.counters = pass.counted();
  if (timed) result.time = ssd::virtual_time_of(geometry, result.counters);
  result.classes = policy.classes();
  result.physical_pages = geometry.physical_pages();
  result.peak_live_pages = live.peak_live_pages;
  result.footprint_pages = facts.footprint_pages;
  return result;
}

Result<ReplayResult> replay_once(Workload& workload, const ReplayOptions& options) {
  SFS_ASSIGN(const std::unique_ptr<PlacementPolicy> policy,
             make_placement(options.placement, options.policy, workload.facts()));
  SFS_TRY(ssd::check_victim(options.victim, options.victim_options));
  SFS_ASSIGN(const ssd::Geometry geometry,
             geometry_for(workload.facts(), options, policy->classes()));
  return ssd::with_victim<Result<ReplayResult>>(
      options.victim, geometry, options.victim_options,
      [&](auto& victim) { return run(workload, options, *policy, geometry, victim); },
      ssd::AllVictims{});
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
  const ssd::Counters& c = result.counters;
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
  if (result.time) ssd::add_to_json(json, *result.time, true);
  for (uint16_t i = 0; i < result.classes; ++i)
    json["per_stream"].push_back({{"stream", i},
                                  {"host_pages", c.streams[i].host_pages},
                                  {"gc_pages", c.streams[i].gc_pages}});
  return json;
}

}  // namespace streamfs::lab
