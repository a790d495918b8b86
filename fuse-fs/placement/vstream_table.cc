#include "fuse-fs/placement/vstream_table.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::placement {
namespace {

bool differs_notably(uint64_t a, uint64_t b) {
  return (a > b ? a - b : b - a) > std::max(a, b) / 8;
}

bool worth_storing(const SavedVStream& now, const SavedVStream& stored) {
  return now.vstream != stored.vstream || now.source != stored.source || now.name != stored.name ||
         differs_notably(now.lifetime_bytes, stored.lifetime_bytes) ||
         differs_notably(now.written_bytes, stored.written_bytes);
}

}  // namespace

VStreamTable::VStreamTable(Store& store, uint16_t pstream_count)
    : store_(store), pstream_count_(pstream_count), hot_(65536) {
  MutexLock lock(mutex_);
  load();
}

void VStreamTable::load() {
  slots_.assign(store_.capacity(), false);
  const std::vector<SavedVStream> saved = store_.load();
  for (uint32_t slot = 0; slot < saved.size() && slot < slots_.size(); ++slot) {
    const SavedVStream& value = saved[slot];
    // Media is input: a slot without a number, or with one or a name already known, stays free.
    if (value.vstream == kDefaultVStream || entries_.contains(value.vstream)) continue;
    if (!value.name.empty() && names_.contains(value.name)) continue;
    slots_[slot] = true;
    Entry& entry = add(value.vstream, value.source, value.name, 0);
    entry.slot = slot;
    entry.saved = value;
    if (value.source == Source::kContext) {
      entry.context = parse_context_name(value.name);
      ++contexts_;
    }
  }
}

VStreamTable::Entry& VStreamTable::add(VStreamId v, Source source, std::string name,
                                       uint64_t clock) {
  Entry& entry = entries_[v];
  entry.source = source;
  entry.name = std::move(name);
  if (!entry.name.empty()) names_[entry.name] = v;
  hot_[v.value].born.store(clock, std::memory_order_relaxed);
  return entry;
}

std::optional<VStreamId> VStreamTable::free_number() {
  for (uint32_t tried = 0; tried < 65536; ++tried) {
    const VStreamId v{next_number_++};
    if (v != kDefaultVStream && !entries_.contains(v)) return v;
  }
  return std::nullopt;
}

// What someone labelled gets a pStream of its own at once while there are any: waiting for
// lifetimes would mix its first data with everything nobody knows. Measuring corrects it later.
PStreamId VStreamTable::unused_pstream() {
  if (none_unused_.load(std::memory_order_relaxed)) return kDefaultPStream;
  std::vector<bool> taken(pstream_count_, false);
  taken[0] = true;
  for (const auto& [v, entry] : entries_) {
    taken[std::min<uint16_t>(pstream(v).value, static_cast<uint16_t>(pstream_count_ - 1))] = true;
  }
  const auto free = std::find(taken.begin(), taken.end(), false);
  none_unused_.store(free == taken.end(), std::memory_order_relaxed);
  return free == taken.end() ? kDefaultPStream
                             : PStreamId{static_cast<uint16_t>(free - taken.begin())};
}

Result<VStreamId> VStreamTable::by_name(std::string_view name, Source source, uint64_t clock) {
  if (name.empty() || name.size() > kNameMax || name.find('\0') != std::string_view::npos) {
    return Error{EINVAL, "vStream name of " + std::to_string(name.size()) + " bytes (1 to 31)"};
  }
  MutexLock lock(mutex_);
  if (const auto known = names_.find(std::string(name)); known != names_.end()) {
    Entry& entry = entries_[known->second];
    entry.source = std::min(entry.source, source);
    return known->second;
  }
  const std::optional<VStreamId> v = free_number();
  if (!v) return Error{ENOSPC, "all 65535 vStreams are in use"};
  const PStreamId first = source == Source::kContext ? kDefaultPStream : unused_pstream();
  add(*v, source, std::string(name), clock);
  hot_[v->value].pstream.store(first.value, std::memory_order_relaxed);
  return *v;
}

VStreamId VStreamTable::by_number(uint16_t number, uint64_t clock) {
  const VStreamId v{number};
  MutexLock lock(mutex_);
  if (entries_.contains(v)) return v;
  const PStreamId first = unused_pstream();
  add(v, Source::kHint, {}, clock);
  hot_[v.value].pstream.store(first.value, std::memory_order_relaxed);
  return v;
}

VStreamId VStreamTable::by_context(const Context& context, uint64_t clock) {
  size_t count = 0;
  {
    MutexLock lock(mutex_);
    count = contexts_;
    const auto known = names_.find(context_name(context));
    if (known != names_.end()) return known->second;
  }
  Context reduced = context;
  if (count >= kContextsMax) reduced.dir.clear();
  if (count >= kContextsNoDirMax) reduced.ext.clear();
  if (reduced == Context{}) return kDefaultVStream;
  const std::string name = context_name(reduced);
  MutexLock lock(mutex_);
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  const auto v = count >= kContextsCommMax ? std::nullopt : free_number();
  if (!v) return kDefaultVStream;
  add(*v, Source::kContext, name, clock).context = std::move(reduced);
  ++contexts_;
  return *v;
}

std::optional<VStreamTable::Entry> VStreamTable::find(VStreamId vstream) const {
  MutexLock lock(mutex_);
  const auto it = entries_.find(vstream);
  return it == entries_.end() ? std::nullopt : std::optional(it->second);
}

std::vector<VStreamId> VStreamTable::used() const {
  MutexLock lock(mutex_);
  std::vector<VStreamId> out;
  out.reserve(entries_.size());
  for (const auto& [v, entry] : entries_) out.push_back(v);
  return out;
}

std::optional<uint32_t> VStreamTable::free_slot() {
  while (next_slot_ < slots_.size() && slots_[next_slot_]) ++next_slot_;
  if (next_slot_ == slots_.size()) return std::nullopt;
  slots_[next_slot_] = true;
  return static_cast<uint32_t>(next_slot_);
}

Result<void> VStreamTable::save_changed(
    uint32_t limit, const std::function<void(VStreamId, SavedVStream&)>& measure) {
  MutexLock lock(mutex_);
  uint32_t stored = 0;
  auto it = entries_.upper_bound(save_from_);
  for (size_t looked = 0; looked < entries_.size() && stored < limit; ++looked, ++it) {
    if (it == entries_.end()) it = entries_.begin();
    auto& [v, entry] = *it;
    save_from_ = v;
    SavedVStream now{v, entry.source, entry.name, 0, 0, entry.saved.written_bytes};
    measure(v, now);
    if (!worth_storing(now, entry.saved)) continue;
    if (!entry.slot) entry.slot = free_slot();
    if (!entry.slot) return {};  // more vStreams than META has room for: the rest live in memory
    SFS_TRY(store_.store(*entry.slot, now));
    entry.saved = now;
    ++stored;
  }
  return {};
}

}  // namespace streamfs::placement
