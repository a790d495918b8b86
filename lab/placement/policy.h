// Placement chooses the stream of a page: at a host write and, for policies inside the device,
// again when garbage collection copies it. (ssd/victim/ chooses the block to collect.)
//
// A policy is one small file here; registry.cc knows their names.
// Thread safety: none; one replay, one policy. A policy does no I/O and reads no clock but the one
// it is given: host pages written so far.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/workload/facts.h"
#include "lab/workload/lifetimes.h"
#include "ssd/ftl/flash_watcher.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::lab {

struct PolicyOptions {
  uint32_t streams = 0;    // of those that can have more or fewer; 0: what each has by default
  bool host_only = false;  // copies are left to the device (host_only.h)
  std::optional<ssd::GcMode> gc_mode;  // where copies go if a host runs it; none: its default
  std::string edges = "log2";          // oracle: log2, quantile or threshold
  uint32_t pages_per_block = 256;
  uint32_t scale =
      1;  // from 1; the device is 1/scale of the source's, and so are AutoStream's sizes
  uint64_t remap_pages = 0;  // vstream: host pages between two rounds of clustering; 0: a 64th of
                             // the footprint
};

// A host write of one page, as a policy sees it.
struct PageWrite {
  ssd::Lpn page;  // numbered by first appearance
  uint16_t pstream, vstream;
  uint64_t index;  // of the write: 0, 1, 2, ...; the clock
  uint64_t death;  // the clock at which the page is overwritten or trimmed; kNever: not at all, or
                   // unknown, because the policy is not one of needs_future()
  uint32_t request_first, request_pages;  // the request it came in, in pages of the host's device
  uint32_t context;
  uint32_t address = 0;  // where the host has the page, in pages, modulo 2^32
  bool prefill = false;  // the device's content before the stream began

  // Return the pages before and after this one in its request. Neighbours in the request are
  // neighbours in address, not necessarily in number.
  uint32_t place_in_request() const { return address - request_first; }
  uint32_t pages_to_request_end() const { return request_pages - 1 - place_in_request(); }
};

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual uint16_t classes() const = 0;  // answers are below this
  // The answers of for_write() are below this.
  virtual uint16_t host_classes() const { return classes(); }
  // Returns the class of a host write. The page's old version still lives. The device has an open
  // block for each class.
  virtual ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) = 0;
  // Returns the class of a copy. `source` is the class of the block that the page lies in.
  virtual ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId source, uint64_t clock) = 0;
  // Tells that a block of this class, opened at this time, is about to be collected.
  virtual void collected(ssd::FrontierId /*frontier*/, uint64_t /*opened_at*/, uint64_t /*clock*/) {
  }
  // Prefetches the page's state. The policy will soon be asked about the page, and a large replay
  // waits mostly for memory.
  virtual void prefetch(ssd::Lpn /*page*/) const {}
  virtual void trimmed(ssd::Lpn /*page*/, uint64_t /*clock*/) {}
  // Returns an observer of the device's flash, which lives as long as the policy; null if it needs
  // none. The replay calls it before the first write.
  virtual ssd::FlashWatcher* watch(const ssd::Geometry& /*geometry*/) { return nullptr; }
  // Returns the policy's own error, if any. The replay calls it at its end.
  virtual Result<void> status() const { return {}; }
};

const std::vector<std::string>& placement_names();

// Returns whether the policy needs deaths and lifetimes (PageWrite, WorkloadFacts).
bool needs_future(const std::string& name);

// Errors: EINVAL; an unknown name lists the known ones. A name with a slash is a shared object
// (plugin.h).
Result<std::unique_ptr<PlacementPolicy>> make_placement(const std::string& name,
                                                        const PolicyOptions& options,
                                                        const WorkloadFacts& facts);

// The FTL's side of a policy.
class PolicyRouter {
 public:
  explicit PolicyRouter(PlacementPolicy& policy, ssd::FlashWatcher* watcher = nullptr)
      : policy_(policy), watcher_(watcher) {}
  void reads(ssd::Ppn at) const {
    if (watcher_ != nullptr) watcher_->read(at);
  }
  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId source, uint64_t clock) const {
    return policy_.for_copy(page, source, clock);
  }
  void prefetch(ssd::Lpn page) const { policy_.prefetch(page); }
  void collected(ssd::FrontierId frontier, uint64_t opened_at, uint64_t clock) const {
    policy_.collected(frontier, opened_at, clock);
  }

 private:
  PlacementPolicy& policy_;
  ssd::FlashWatcher* const watcher_;
};

}  // namespace streamfs::lab
