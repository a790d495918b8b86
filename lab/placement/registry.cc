#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/placement/aged_tags.h"
#include "lab/placement/autostream.h"
#include "lab/placement/dac.h"
#include "lab/placement/emmc.h"
#include "lab/placement/full_history_logistic.h"
#include "lab/placement/host_only.h"
#include "lab/placement/lifetime_table.h"
#include "lab/placement/loaded.h"
#include "lab/placement/nosep.h"
#include "lab/placement/oracle.h"
#include "lab/placement/policy.h"
#include "lab/placement/sepbit.h"
#include "lab/placement/sepgc.h"
#include "lab/placement/tags.h"
#include "lab/placement/vstream.h"
#include "lab/placement/warcip.h"
#include "lab/workload/facts.h"
#include "ssd/ftl/vstream/stream_map.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

using Policy = std::unique_ptr<PlacementPolicy>;

enum class Side : uint8_t {
  kDevice,  // learns from copies or collections: a host cannot run it
  kEither,
  kHost,  // always as a host runs it
};

struct Kind {
  const char* name;
  uint32_t streams;  // by default
  Side side;
  ssd::GcMode gc_mode;  // by default, when run by a host
  bool needs_future;
  Policy (*make)(uint16_t streams, const PolicyOptions& options, const WorkloadFacts& facts);
};

template <typename Made>
Policy plain(uint16_t, const PolicyOptions&, const WorkloadFacts&) {
  return std::make_unique<Made>();
}
template <typename Made>
Policy by_streams(uint16_t streams, const PolicyOptions&, const WorkloadFacts&) {
  return std::make_unique<Made>(streams);
}
template <typename Made>
Policy by_scale(uint16_t streams, const PolicyOptions& options, const WorkloadFacts&) {
  return std::make_unique<Made>(streams, options.scale);
}
template <typename Made>
Policy by_page(uint16_t streams, const PolicyOptions&, const WorkloadFacts& facts) {
  return std::make_unique<Made>(streams, facts.footprint_pages);
}
Policy make_sepbit(uint16_t, const PolicyOptions&, const WorkloadFacts& facts) {
  return std::make_unique<SepBit>(facts);
}
Policy make_warcip(uint16_t streams, const PolicyOptions& options, const WorkloadFacts& facts) {
  return std::make_unique<Warcip>(streams, facts.footprint_pages, options.pages_per_block);
}
Policy make_full_history_logistic(uint16_t streams, const PolicyOptions&,
                                  const WorkloadFacts& facts) {
  return std::make_unique<FullHistoryLogistic>(streams, facts);
}
Policy make_emmc(uint16_t, const PolicyOptions&, const WorkloadFacts& facts) {
  return std::make_unique<Emmc>(facts.footprint_pages);
}
template <VStreamGc kGc, ssd::vstream::Clustering kClustering>
Policy make_vstream(uint16_t streams, const PolicyOptions& options, const WorkloadFacts& facts) {
  const uint64_t remap = options.remap_pages != 0
                             ? options.remap_pages
                             : std::max<uint64_t>(facts.footprint_pages / 64, 1);
  return std::make_unique<VStream>(VStream::Options{kGc, {streams, remap, kClustering}});
}
Policy make_oracle(uint16_t streams, const PolicyOptions& options, const WorkloadFacts& facts) {
  return std::make_unique<Oracle>(streams, options, facts);
}

constexpr ssd::GcMode kSame = ssd::GcMode::kSameStream;
constexpr Kind in_device(const char* name, decltype(Kind::make) make) {
  return {name, 3, Side::kDevice, kSame, false, make};
}
constexpr std::array kKinds = {
    Kind{"nosep", 1, Side::kEither, kSame, false, plain<NoSep>},
    Kind{"sepgc", 2, Side::kDevice, kSame, false, plain<SepGc>},
    Kind{"sepbit", 6, Side::kDevice, kSame, false, make_sepbit},
    Kind{"dac", 6, Side::kDevice, kSame, false, by_page<Dac>},
    Kind{"autostream-sfr", 5, Side::kEither, kSame, false, by_scale<AutoStreamSfr>},
    Kind{"autostream-mq", 5, Side::kEither, kSame, false, by_scale<AutoStreamMq>},
    Kind{"warcip", 5, Side::kEither, kSame, false, make_warcip},
    Kind{"lifetime-table", 8, Side::kEither, kSame, false, by_page<LifetimeTable>},
    Kind{"logistic-full-history", 8, Side::kEither, kSame, false, make_full_history_logistic},
    Kind{"tags", 8, Side::kHost, ssd::GcMode::kOwnFrontier, false, by_streams<Tags>},
    Kind{"tags-aged", 8, Side::kDevice, kSame, false, by_page<AgedTags>},
    Kind{"legacy", 2, Side::kDevice, kSame, false, plain<SepGc>},
    Kind{"manual", 3, Side::kHost, ssd::GcMode::kShared, false, by_streams<Tags>},
    Kind{"emmc", 0, Side::kDevice, kSame, false, make_emmc},
    in_device("vstream-ngc", make_vstream<VStreamGc::kNormal, ssd::vstream::Clustering::kOurs>),
    in_device("vstream-own", make_vstream<VStreamGc::kOwnPStream, ssd::vstream::Clustering::kOurs>),
    in_device("vstream-sgc", make_vstream<VStreamGc::kAware, ssd::vstream::Clustering::kOurs>),
    in_device("vstream-literal",
              make_vstream<VStreamGc::kAware, ssd::vstream::Clustering::kLiteral>),
    in_device("vstream-literal-spread",
              make_vstream<VStreamGc::kAware, ssd::vstream::Clustering::kLiteralSpread>),
    Kind{"oracle", 10, Side::kEither, kSame, true, make_oracle},
    Kind{"oracle-host", 10, Side::kHost, kSame, true, make_oracle},
};

const Kind* find(const std::string& name) {
  const auto* kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return k.name == name; });
  return kind == kKinds.end() ? nullptr : kind;
}

Result<Policy> as_host(Policy policy, const PolicyOptions& options, ssd::GcMode otherwise) {
  const ssd::GcMode mode = options.gc_mode.value_or(otherwise);
  auto host = std::make_unique<HostOnly>(std::move(policy), mode);
  if (host->classes() > ssd::kMaxStreams)
    return Error{EINVAL, fmt::format("{} streams and their copies need {} open blocks, at most {}",
                                     host->host_classes(), host->classes(), ssd::kMaxStreams)};
  return Policy(std::move(host));
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos;
}

}  // namespace

const std::vector<std::string>& placement_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Kind& kind : kKinds) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

bool needs_future(const std::string& name) {
  if (is_path(name)) {
    const Result<PlacementObject> object = PlacementObject::load(name);
    return object.ok() && object->functions().needs_future != 0;
  }
  const Kind* kind = find(name);
  return kind != nullptr && kind->needs_future;
}

Result<Policy> make_placement(const std::string& name, const PolicyOptions& options,
                              const WorkloadFacts& facts) {
  if (is_path(name)) {
    SFS_ASSIGN(Policy loaded, LoadedPolicy::make(name, options, facts));
    if (!options.host_only) return loaded;
    return as_host(std::move(loaded), options, kSame);
  }
  const Kind* kind = find(name);
  if (kind == nullptr)
    return Error{EINVAL, fmt::format("no placement '{}'; there are {}, and ./yours.so", name,
                                     fmt::join(placement_names(), ", "))};
  const uint32_t streams = options.streams == 0 ? kind->streams : options.streams;
  if (streams > ssd::kMaxStreams / 2)
    return Error{EINVAL, fmt::format("placement {}: {} streams; choose 1 to {}", name, streams,
                                     ssd::kMaxStreams / 2)};
  Policy policy = kind->make(static_cast<uint16_t>(streams), options, facts);
  if (kind->side != Side::kHost && !options.host_only) return policy;
  if (kind->side == Side::kDevice)
    return Error{EINVAL, name + " learns from copies: there is no host-only form of it"};
  return as_host(std::move(policy), options, kind->gc_mode);
}

}  // namespace streamfs::lab
