// The vStreams in use: numbers, names, where each came from, and the pStream measured lifetimes
// give.
//
// Thread safety: every method, any thread. pstream() and born_clock() are plain atomics for the
// write path; the rest takes the table's mutex (a leaf).
// Crash: what save_changed() stored is there at the next mount, numbers and names unchanged.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/placement/context.h"
#include "fuse-fs/placement/placement.h"

namespace streamfs::placement {

class VStreamTable {
 public:
  // Numbers given to names start here: programs that say numbers say small ones.
  static constexpr uint16_t kFirstNamed = 0x4000;
  static constexpr size_t kContextsMax = 4096;       // of (comm, extension, directory)
  static constexpr size_t kContextsNoDirMax = 5120;  // then (comm, extension) up to here
  static constexpr size_t kContextsCommMax = 5376;   // then comm; then the default

  struct Entry {
    Source source = Source::kDefault;
    std::string name;
    Context context;
    std::optional<uint32_t> slot;
    SavedVStream saved;  // as last stored
  };

  VStreamTable(Store& store, uint16_t pstream_count);

  // ENOSPC when all are in use; EINVAL for a name of no or more than kNameMax bytes.
  Result<VStreamId> by_name(std::string_view name, Source source, uint64_t clock);
  VStreamId by_number(uint16_t number, uint64_t clock);
  VStreamId by_context(const Context& context, uint64_t clock);
  std::optional<Entry> find(VStreamId vstream) const;
  std::vector<VStreamId> used() const;

  PStreamId pstream(VStreamId v) const {
    return PStreamId{hot_[v.value].pstream.load(std::memory_order_relaxed)};
  }
  uint64_t born_clock(VStreamId v) const {
    return hot_[v.value].born.load(std::memory_order_relaxed);
  }
  void set_pstream(VStreamId v, PStreamId p) {
    hot_[v.value].pstream.store(p.value, std::memory_order_relaxed);
    none_unused_.store(false, std::memory_order_relaxed);
  }

  // Stores at most `limit` vStreams whose value, as measure() gives it, differs notably from what
  // the store has. The first error ends it.
  Result<void> save_changed(uint32_t limit,
                            const std::function<void(VStreamId, SavedVStream&)>& measure);

 private:
  struct Hot {
    std::atomic<uint64_t> born{0};
    std::atomic<uint16_t> pstream{0};
  };
  void load() SFS_REQUIRES(mutex_);
  Entry& add(VStreamId v, Source source, std::string name, uint64_t clock) SFS_REQUIRES(mutex_);
  std::optional<VStreamId> free_number() SFS_REQUIRES(mutex_);
  PStreamId unused_pstream() SFS_REQUIRES(mutex_);
  std::optional<uint32_t> free_slot() SFS_REQUIRES(mutex_);

  Store& store_;
  const uint16_t pstream_count_;
  std::vector<Hot> hot_;
  std::atomic<bool> none_unused_{false};  // spares a look at all of them
  mutable Mutex mutex_;                   // leaf
  std::map<VStreamId, Entry> entries_ SFS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, VStreamId> names_ SFS_GUARDED_BY(mutex_);
  std::vector<bool> slots_ SFS_GUARDED_BY(mutex_);
  size_t contexts_ SFS_GUARDED_BY(mutex_) = 0;
  uint16_t next_number_ SFS_GUARDED_BY(mutex_) = kFirstNamed;
  size_t next_slot_ SFS_GUARDED_BY(mutex_) = 0;
  VStreamId save_from_ SFS_GUARDED_BY(mutex_){};
};

}  // namespace streamfs::placement
