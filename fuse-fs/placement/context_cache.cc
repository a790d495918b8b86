#include "fuse-fs/placement/context_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/types.h"
#include "fuse-fs/placement/context.h"
#include "fuse-fs/placement/lifetime.h"

namespace streamfs::placement {
namespace {

using Seen = LifetimeTable::Seen;

// Limits of the true lifetime, in pages.
struct Bounds {
  double low, high;
};

Bounds bounds_of(const Seen& seen) {
  if (const auto known = seen.lifetime_pages()) return {*known, *known};
  return {seen.exposure / (seen.deaths + 1), std::numeric_limits<double>::infinity()};
}

// Returns by what factor one lifetime exceeds the other at least; 0 if neither is known.
double apart(const Seen& one, const Seen& other) {
  const Bounds a = bounds_of(one), b = bounds_of(other);
  return std::max(a.low / b.high, b.low / a.high);
}

Seen without(Seen all, const Seen& part) {
  all.exposure = std::max(0.0, all.exposure - part.exposure);
  all.deaths = std::max(0.0, all.deaths - part.deaths);
  return all;
}

// The contexts shown as one vStream, and the parts that might be split off it.
class Shared {
 public:
  void add(const ContextSeen& each) {
    all_ += each.seen;
    if (each.is_shown()) {
      whole_ = each.context;
    } else {
      parts_.push_back(&each);
    }
  }

  // Removes and returns the part whose lifetime differs most from the rest, if by more than
  // kEarnedRatio. Extensions come before directories.
  std::optional<ContextSplit> split() {
    std::map<std::string, Candidate> by_extension;
    std::vector<Candidate> by_directory;
    for (const ContextSeen* part : parts_) {
      by_directory.push_back({{part->context, part->vstream}, part->seen});
      const auto wider = extension_of(*part);
      if (!wider) continue;
      Candidate& all = by_extension[wider->ext];
      all.split.context = *wider;
      all.seen += part->seen;
      if (part->context == *wider) all.split.vstream = part->vstream;
    }
    std::optional<ContextSplit> found = farthest(by_extension | std::views::values);
    if (!found) found = farthest(by_directory);
    if (found) remove(*found);
    return found;
  }

 private:
  struct Candidate {
    ContextSplit split;
    Seen seen;
  };

  template <typename Candidates>
  std::optional<ContextSplit> farthest(Candidates&& candidates) const {
    std::optional<ContextSplit> found;
    double most = kEarnedRatio;
    for (const Candidate& each : candidates) {
      if (each.seen.written_pages < kEarnedPages) continue;
      const double ratio = apart(each.seen, without(all_, each.seen));
      if (ratio > most) found = each.split;
      most = std::max(most, ratio);
    }
    return found;
  }

  // Returns the context of all files with the part's extension. Nothing if this vStream already is
  // one extension's.
  std::optional<Context> extension_of(const ContextSeen& part) const {
    if (!whole_.ext.empty() || part.context.ext.empty()) return std::nullopt;
    return Context{part.context.comm, part.context.ext, {}};
  }

  void remove(const ContextSplit& split) {
    std::erase_if(parts_, [&](const ContextSeen* part) {
      const bool gone = part->vstream == split.vstream || extension_of(*part) == split.context;
      if (gone) all_ = without(all_, part->seen);
      return gone;
    });
  }

  Context whole_;
  Seen all_;
  std::vector<const ContextSeen*> parts_;
};

}  // namespace

std::vector<ContextSplit> contexts_to_split(const std::vector<ContextSeen>& contexts) {
  std::map<VStreamId, Shared> shared;
  for (const ContextSeen& each : contexts) shared[each.shown].add(each);
  std::vector<ContextSplit> out;
  for (auto& [shown, group] : shared) {
    if (shown == kDefaultVStream) continue;
    while (auto split = group.split()) out.push_back(std::move(*split));
  }
  return out;
}

std::vector<VStreamId> contexts_to_evict(const std::vector<ContextSeen>& contexts, uint32_t owner,
                                         size_t limit) {
  std::set<VStreamId> shown_as;
  std::set<std::string> programs;
  for (const ContextSeen& each : contexts) {
    if (!each.is_shown()) shown_as.insert(each.shown);
    if (!each.is_program()) programs.insert(each.context.comm);
  }
  const auto kept = [&](const ContextSeen& each) {
    if (each.owner != owner) return true;
    if (!each.is_shown()) return false;
    return each.seen.live_pages + each.forgotten_live > 0 || shown_as.contains(each.vstream) ||
           (each.is_program() && programs.contains(each.context.comm));
  };
  std::vector<std::tuple<int, uint64_t, VStreamId>> order;
  for (const ContextSeen& each : contexts) {
    if (kept(each)) continue;
    const int rank = each.is_shown() ? 2 : each.seen.live_pages > 0 ? 1 : 0;
    order.emplace_back(rank, each.last_written, each.vstream);
  }
  std::ranges::sort(order);
  order.resize(std::min(order.size(), limit));
  std::vector<VStreamId> out;
  for (const auto& [rank, written, vstream] : order) out.push_back(vstream);
  return out;
}

}  // namespace streamfs::placement
