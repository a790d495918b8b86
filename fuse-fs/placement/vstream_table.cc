#include "fuse-fs/placement/vstream_table.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
  return now.vstream != stored.vstream || now.generation != stored.generation ||
         now.source != stored.source || now.earned != stored.earned || now.name != stored.name ||
         differs_notably(now.lifetime_bytes, stored.lifetime_bytes) ||
         differs_notably(now.written_bytes, stored.written_bytes);
}

// Returns the uid as a slot keeps it: its low 24 bits.
uint32_t owner_of(uint32_t uid) {
  return uid & 0xffffff;
}

bool is_program(const Context& context) {
  return context.ext.empty() && context.dir.empty();
}

}  // namespace

VStreamTable::VStreamTable(Store& store, LifetimeTable& lifetimes, uint16_t pstream_count,
                           uint8_t first_generation)
    : store_(store),
      lifetimes_(lifetimes),
      pstream_count_(pstream_count),
      generation_step_(first_generation | 1),
      hot_(kVStreams) {
  for (uint32_t v = 0; v < kVStreams; ++v) {
    show(VStreamId{static_cast<uint16_t>(v)}, VStreamId{static_cast<uint16_t>(v)});
    if (v != 0) hot_[v].generation.store(first_generation, std::memory_order_relaxed);
  }
  MutexLock lock(mutex_);
  load();
  load_contexts();
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
    hot_[value.vstream.value].generation.store(value.generation, std::memory_order_relaxed);
    entry.slot = slot;
    entry.saved = value;
    entry.earned = value.earned;
  }
}

// Shows contexts as META has them. Adds a program for which META had no room.
void VStreamTable::load_contexts() {
  std::vector<VStreamId> contexts;
  for (const auto& [v, entry] : entries_) {
    if (entry.source == Source::kContext) contexts.push_back(v);
  }
  for (const VStreamId v : contexts) {
    const Entry& entry = entries_[v];
    count_context(v, parse_context_name(entry.name), entry.saved.owner);
  }
  for (const VStreamId v : contexts) {
    const Entry& entry = entries_[v];
    (void)add_context({entry.context.comm, {}, {}}, entry.owner, 0);
    if (!entry.earned) show(v, shown_above(entry.context));
  }
}

void VStreamTable::count_context(VStreamId v, Context context, uint32_t owner) {
  Entry& entry = entries_[v];
  entry.earned = entry.earned || is_program(context);
  entry.context = std::move(context);
  entry.owner = owner;
  ++owners_[owner].contexts;
  ++contexts_;
}

void VStreamTable::show(VStreamId v, VStreamId as) {
  hot_[v.value].parent.store(as.value, std::memory_order_relaxed);
  hot_[v.value].shown.store(as.value, std::memory_order_relaxed);
}

std::optional<VStreamId> VStreamTable::named(const std::string& name) const {
  const auto known = names_.find(name);
  return known == names_.end() ? std::nullopt : std::optional(known->second);
}

// Returns the vStream that a context without a vStream of its own is shown as.
VStreamId VStreamTable::shown_above(const Context& context) const {
  for (const Context& above : {Context{context.comm, context.ext, {}}, Context{context.comm}}) {
    const auto v = named(context_name(above));
    if (v && entries_.at(*v).earned) return *v;
  }
  return kDefaultVStream;
}

VStreamTable::Entry& VStreamTable::add(VStreamId v, Source source, std::string name,
                                       uint64_t clock) {
  Entry& entry = entries_[v];
  entry.source = source;
  entry.name = std::move(name);
  if (!entry.name.empty()) names_[entry.name] = v;
  Hot& hot = hot_[v.value];
  hot.generation.fetch_add(generation_step_, std::memory_order_relaxed);
  hot.born.store(clock, std::memory_order_relaxed);
  hot.written.store(clock, std::memory_order_relaxed);
  hot.pstream.store(kDefaultPStream.value, std::memory_order_relaxed);
  show(v, v);
  return entry;
}

// Searches the numbers from kFirstNamed to `end`, inclusive, once round, beginning at `next`.
std::optional<VStreamId> VStreamTable::free_number(uint16_t& next, uint16_t end) {
  for (uint32_t tried = kFirstNamed; tried <= end; ++tried) {
    const VStreamId v{next};
    next = next >= end ? kFirstNamed : static_cast<uint16_t>(next + 1);
    if (entries_.contains(v) || lifetimes_.live_pages(v) > 0) continue;
    lifetimes_.forget(v);
    return v;
  }
  return std::nullopt;
}

// Returns a free pStream for a labelled vStream. Without one, the vStream's first data would share
// the default pStream with all data of unknown lifetime until its own is measured. Measuring
// corrects the choice later.
PStreamId VStreamTable::unused_pstream() {
  if (none_unused_.load(std::memory_order_relaxed)) return kDefaultPStream;
  std::vector<bool> taken(pstream_count_, false);
  taken[0] = true;
  for (const auto& [v, entry] : entries_) {
    if (shown(v) != v) continue;
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
    said(known->second, source);
    return known->second;
  }
  const std::optional<VStreamId> v = free_number(next_named_, UINT16_MAX);
  if (!v) return Error{ENOSPC, "all vStreams for names are in use"};
  const PStreamId first = unused_pstream();
  add(*v, source, std::string(name), clock);
  hot_[v->value].pstream.store(first.value, std::memory_order_relaxed);
  return *v;
}

VStreamId VStreamTable::by_number(uint16_t number, uint64_t clock) {
  const VStreamId v{number};
  MutexLock lock(mutex_);
  if (entries_.contains(v)) {
    said(v, Source::kHint);
    return v;
  }
  if (lifetimes_.live_pages(v) == 0) lifetimes_.forget(v);
  const PStreamId first = unused_pstream();
  add(v, Source::kHint, {}, clock);
  hot_[v.value].pstream.store(first.value, std::memory_order_relaxed);
  return v;
}

// The stronger source counts: if a hint or rule names a context, the context leaves the cache.
void VStreamTable::said(VStreamId v, Source source) {
  Entry& entry = entries_[v];
  if (entry.source == Source::kContext && source < Source::kContext) {
    --owners_[entry.owner].contexts;
    --contexts_;
    show(v, v);
  }
  entry.source = std::min(entry.source, source);
}

VStreamId VStreamTable::by_context(const Context& context, uint32_t uid, uint64_t clock) {
  if (context == Context{}) return kDefaultVStream;
  const std::string name = context_name(context);
  MutexLock lock(mutex_);
  if (const auto known = named(name)) return *known;
  const Context program{context.comm, {}, {}};
  if (!make_room(owner_of(uid), clock)) {
    return named(context_name(program)).value_or(kDefaultVStream);
  }
  const auto whole = add_context(program, owner_of(uid), clock);
  const auto v = add_context(context, owner_of(uid), clock);
  return v ? *v : whole.value_or(kDefaultVStream);
}

std::optional<VStreamId> VStreamTable::add_context(const Context& context, uint32_t owner,
                                                   uint64_t clock) {
  std::string name = context_name(context);
  if (const auto known = named(name)) return known;
  if (clock < numbers_from_) return std::nullopt;
  const auto v = free_number(next_context_, kContextsEnd - 1);
  if (!v) {
    numbers_from_ = clock + kEvictAgainPages;
    return std::nullopt;
  }
  add(*v, Source::kContext, std::move(name), clock);
  count_context(*v, context, owner);
  if (!is_program(context)) show(*v, shown_above(context));
  return v;
}

// Makes room for a context and its program. Returns false if none can be displaced.
bool VStreamTable::make_room(uint32_t owner, uint64_t clock) {
  Owner& its = owners_[owner];
  if (its.contexts + 2 <= kContextsOfOwnerMax && contexts_ + 2 <= kContextsMax) return true;
  if (clock < its.evict_from) return false;
  const std::vector<VStreamId> evicted = contexts_to_evict(contexts_seen(), owner, kEvictedAtOnce);
  for (const VStreamId v : evicted) give_up(v);
  if (evicted.empty()) its.evict_from = clock + kEvictAgainPages;
  return !evicted.empty();
}

// Displaces a context. Its data stays with the vStream that it was shown as. The context's number
// is not used again before all of that data has died.
void VStreamTable::give_up(VStreamId v) {
  const auto it = entries_.find(v);
  Entry& entry = it->second;
  if (entry.slot) to_clear_.push_back(*entry.slot);
  names_.erase(entry.name);
  --owners_[entry.owner].contexts;
  --contexts_;
  entries_.erase(it);
  if (shown(v) != v) return;
  for (uint32_t other = 1; other < kVStreams; ++other) {
    const VStreamId each{static_cast<uint16_t>(other)};
    if (shown(each) == v) show(each, kDefaultVStream);
    if (parent(each) == v) hot_[other].parent.store(each.value, std::memory_order_relaxed);
  }
}

std::vector<ContextSeen> VStreamTable::contexts_seen() const {
  std::unordered_map<uint16_t, uint64_t> forgotten;  // live pages, by the vStream they are shown as
  for (uint32_t number = 1; number < kVStreams; ++number) {
    const VStreamId v{static_cast<uint16_t>(number)};
    if (shown(v) == v || entries_.contains(v)) continue;
    forgotten[shown(v).value] += lifetimes_.live_pages(v);
  }
  std::vector<ContextSeen> out;
  out.reserve(contexts_);
  for (const auto& [v, entry] : entries_) {
    if (entry.source != Source::kContext) continue;
    const uint64_t written = hot_[v.value].written.load(std::memory_order_relaxed);
    out.push_back(
        {v, shown(v), entry.context, lifetimes_.seen(v), entry.owner, written, forgotten[v.value]});
  }
  return out;
}

void VStreamTable::split_contexts(uint64_t clock) {
  MutexLock lock(mutex_);
  for (const ContextSplit& each : contexts_to_split(contexts_seen())) split(each, clock);
}

// If the model is older than the new vStream, the parent's row serves (PlacementImpl::known_to).
void VStreamTable::split(const ContextSplit& split, uint64_t clock) {
  const Context& context = split.context;
  const VStreamId from = split.vstream ? shown(*split.vstream) : shown_above(context);
  const auto above = entries_.find(from);
  if (above == entries_.end()) return;
  const uint32_t owner = above->second.owner;
  auto v = split.vstream;
  if (!v && make_room(owner, clock)) v = add_context(context, owner, clock);
  if (!v || !entries_.contains(*v)) return;  // displaced meanwhile
  entries_[*v].earned = true;
  Hot& hot = hot_[v->value];
  hot.born.store(clock, std::memory_order_relaxed);
  hot.pstream.store(pstream(from).value, std::memory_order_relaxed);
  show(*v, *v);
  hot.parent.store(from.value, std::memory_order_relaxed);
  if (!context.dir.empty()) return;
  for (const auto& [each, entry] : entries_) {
    const bool of_it = entry.source == Source::kContext && !entry.earned &&
                       entry.context.comm == context.comm && entry.context.ext == context.ext;
    if (of_it) show(each, *v);
  }
}

std::optional<VStreamTable::Entry> VStreamTable::find(VStreamId vstream) const {
  MutexLock lock(mutex_);
  const auto it = entries_.find(vstream);
  return it == entries_.end() ? std::nullopt : std::optional(it->second);
}

std::map<VStreamId, VStreamTable::Entry> VStreamTable::entries() const {
  MutexLock lock(mutex_);
  return entries_;
}

std::vector<VStreamId> VStreamTable::used() const {
  MutexLock lock(mutex_);
  std::vector<VStreamId> out;
  out.reserve(entries_.size());
  for (const auto& [v, entry] : entries_) {
    if (shown(v) == v) out.push_back(v);
  }
  return out;
}

std::unordered_map<uint16_t, LifetimeTable::Seen> VStreamTable::seen() const {
  std::unordered_map<uint16_t, LifetimeTable::Seen> out;
  for (uint32_t number = 0; number < kVStreams; ++number) {
    const VStreamId v{static_cast<uint16_t>(number)};
    const LifetimeTable::Seen one = lifetimes_.seen(v);
    if (!one.nothing()) out[shown(v).value] += one;
  }
  return out;
}

LifetimeTable::Seen VStreamTable::seen(VStreamId shown_one) const {
  LifetimeTable::Seen out;
  for (uint32_t number = 0; number < kVStreams; ++number) {
    const VStreamId v{static_cast<uint16_t>(number)};
    if (shown(v) == shown_one) out += lifetimes_.seen(v);
  }
  return out;
}

std::optional<uint32_t> VStreamTable::free_slot() {
  while (next_slot_ < slots_.size() && slots_[next_slot_]) ++next_slot_;
  if (next_slot_ == slots_.size()) return std::nullopt;
  slots_[next_slot_] = true;
  return static_cast<uint32_t>(next_slot_);
}

// Clears first, so that no name and no number is ever in two slots.
Result<void> VStreamTable::clear_slots() {
  while (!to_clear_.empty()) {
    const uint32_t slot = to_clear_.back();
    SFS_TRY(store_.store(slot, {}));
    to_clear_.pop_back();
    slots_[slot] = false;
    next_slot_ = std::min<size_t>(next_slot_, slot);
  }
  return {};
}

Result<void> VStreamTable::save_changed(
    uint32_t limit, const std::function<void(VStreamId, SavedVStream&)>& measure) {
  MutexLock lock(mutex_);
  SFS_TRY(clear_slots());
  uint32_t stored = 0;
  auto it = entries_.upper_bound(save_from_);
  for (size_t looked = 0; looked < entries_.size() && stored < limit; ++looked, ++it) {
    if (it == entries_.end()) it = entries_.begin();
    auto& [v, entry] = *it;
    save_from_ = v;
    SavedVStream now{v,
                     entry.source,
                     entry.name,
                     0,
                     0,
                     entry.saved.written_bytes,
                     generation_of(v),
                     entry.earned,
                     entry.owner};
    measure(v, now);
    if (!worth_storing(now, entry.saved)) continue;
    if (!entry.slot) entry.slot = free_slot();
    if (!entry.slot) continue;  // META has no room for it: it is in memory only
    SFS_TRY(store_.store(*entry.slot, now));
    entry.saved = now;
    ++stored;
  }
  return {};
}

}  // namespace streamfs::placement
