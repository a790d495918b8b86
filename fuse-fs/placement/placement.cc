#include "fuse-fs/placement/placement.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mix.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "base/wire/telemetry.h"
#include "fuse-fs/placement/confidence.h"
#include "fuse-fs/placement/expected.h"
#include "fuse-fs/placement/name_rules.h"
#include "fuse-fs/placement/placement_impl.h"
#include "fuse-fs/placement/stored_model.h"
#include "learning/cluster.h"
#include "learning/placement_model.h"
#include "learning/request.h"
#include "learning/table.h"

namespace streamfs::placement {
namespace {

constexpr double kScalePages = 65536;  // the rate of writing is measured over so many pages
constexpr uint32_t kLongRequest = std::numeric_limits<uint32_t>::max();  // pages

// Inodes may hold numbers that a crash lost from the table or that were displaced. Their
// generations come from earlier mounts, so each mount starts at a pseudo-random value; 1 in 256
// pairs agree.
uint8_t first_generation(Clock& clock) {
  const Timestamp now = clock.now();
  return static_cast<uint8_t>(mix64(static_cast<uint64_t>(now.seconds) ^ now.nanoseconds));
}

}  // namespace

using wire::TelemetryKind;

Result<std::unique_ptr<Placement>> Placement::open(Store& store, Clock& clock,
                                                   const Options& options) {
  if (options.pstream_count == 0 || options.pstream_count > 256) {
    return Error{EINVAL, "a device of " + std::to_string(options.pstream_count) + " pStreams"};
  }
  SFS_ASSIGN(auto rules, NameRules::load(options.profiles_folder, options.profile));
  SFS_ASSIGN(auto model, Model::make(options.pstream_count, options.uuid));
  SFS_ASSIGN(auto telemetry,
             Telemetry::make(options.telemetry_capacity, options.capacity_blocks, options.uuid));
  return std::unique_ptr<Placement>(std::make_unique<PlacementImpl>(
      store, clock, options, std::move(rules), std::move(model), std::move(telemetry)));
}

PlacementImpl::PlacementImpl(Store& store, Clock& clock, const Options& options, NameRules rules,
                             std::unique_ptr<Model> model, std::unique_ptr<Telemetry> telemetry)
    : options_(options),
      rules_(std::move(rules)),
      clock_(clock),
      lifetimes_(options.capacity_blocks),
      table_(store, lifetimes_, options.pstream_count, first_generation(clock)),
      ages_(options.capacity_blocks, options.capacity_blocks, options.ages_bytes_max),
      model_(std::move(model)),
      telemetry_(std::move(telemetry)),
      now_ms_(static_cast<uint32_t>(clock.monotonic_ms())) {
  for (const auto& [v, entry] : table_.entries()) {
    const uint64_t bytes = entry.saved.lifetime_bytes;
    if (bytes != 0) lifetimes_.set_prior(v, static_cast<double>(bytes) / kBlockSize);
    if (entry.source != Source::kContext) (void)expect(v, entry.name);
  }
  MutexLock lock(tick_mutex_);
  remap();
}

std::optional<Chosen> PlacementImpl::choose_by_label(const CreateContext& context) {
  if (options_.mode == Mode::kLearned) return std::nullopt;
  if (context.parent_vstream != kDefaultVStream) {
    return Chosen{context.parent_vstream, Source::kDirectory};
  }
  const char* ruled = rules_.match(context.directory, context.name, context.comm);
  if (ruled == nullptr) return std::nullopt;
  const Result<VStreamId> v = by_name(ruled, Source::kRule);
  if (!v.ok()) return std::nullopt;
  return Chosen{*v, Source::kRule, table_.generation_of(*v)};
}

Chosen PlacementImpl::choose(const CreateContext& context) {
  if (options_.mode == Mode::kOff) return {};
  if (const auto labelled = choose_by_label(context)) return *labelled;
  const VStreamId v = table_.by_context(context_of(context.comm, context.name, context.directory),
                                        context.uid, lifetimes_.now());
  if (v == kDefaultVStream) return {};
  return {v, Source::kContext, table_.generation_of(v)};
}

Result<VStreamId> PlacementImpl::by_name(std::string_view name, Source source) {
  SFS_ASSIGN(const VStreamId v, table_.by_name(name, source, lifetimes_.now()));
  if (lifetimes_.expected_pages(v) != 0) return v;
  if (const auto pages = expect(v, std::string(name))) place_first(v, *pages);
  return v;
}

std::optional<double> PlacementImpl::expectation(const std::string& name) {
  const double ms_per_page = static_cast<double>(lifetime_ms(kScalePages)) / kScalePages;
  const auto said = pages_of_name(name, options_.capacity_blocks, ms_per_page);
  return said ? said : pages_of_life(rules_.life_of(name), options_.capacity_blocks);
}

std::optional<double> PlacementImpl::expect(VStreamId vstream, const std::string& name) {
  const std::optional<double> pages = expectation(name);
  // A lifetime in seconds needs the rate of writing, which is not known at mount: it is asked again
  // once the rate is known.
  const bool later = !pages && says_seconds(name) && lifetime_ms(kScalePages) == 0;
  lifetimes_.set_expected(vstream, pages.value_or(later ? 0 : -1));
  return pages;
}

// If no pStream of its own was left for the vStream, its first data goes to that of the vStream
// with the nearest lifetime.
void PlacementImpl::place_first(VStreamId vstream, double pages) {
  if (table_.pstream(vstream) != kDefaultPStream) return;
  table_.set_pstream(vstream, nearest(pages, vstream));
}

// Returns the pStream of the vStream whose lifetime is nearest by ratio; the default one if no
// lifetime is known.
PStreamId PlacementImpl::nearest(double lifetime_pages, VStreamId but) {
  PStreamId found = kDefaultPStream;
  double least = std::numeric_limits<double>::infinity();
  const auto seen = table_.seen();
  for (const VStreamId v : table_.used()) {
    const auto its = seen.find(v.value);
    if (v == but || its == seen.end()) continue;
    const auto pages = lifetimes_.estimate_pages(its->second);
    if (!pages) continue;
    const double apart = std::abs(std::log(*pages / lifetime_pages));
    if (apart < least) found = table_.pstream(v);
    least = std::min(least, apart);
  }
  return found;
}

Result<VStreamId> PlacementImpl::by_number(uint32_t number) {
  if (number == 0 || number > 65535) {
    return Error{ERANGE, "vStream " + std::to_string(number) + " (1 to 65535)"};
  }
  return table_.by_number(static_cast<uint16_t>(number), lifetimes_.now());
}

Result<VStreamId> PlacementImpl::by_rw_hint(uint32_t rw_hint) {
  if (rw_hint > kLifeMost) return Error{EINVAL, "write hint " + std::to_string(rw_hint)};
  const std::string_view name = name_of_life(rw_hint);
  if (name.empty()) return kDefaultVStream;
  return by_name(name, Source::kHint);
}

uint64_t PlacementImpl::lifetime_ms(double pages) {
  MutexLock lock(scale_mutex_);
  return scale_.duration_ms(pages);
}

VStreamInfo PlacementImpl::measure(VStreamId vstream, const VStreamTable::Entry& entry,
                                   const LifetimeTable::Seen& seen) {
  VStreamInfo out;
  out.vstream = vstream;
  out.generation = table_.generation_of(vstream);
  out.source = entry.source;
  out.name = entry.name;
  out.built_in = rules_.is_built_in(entry.name) || is_name_of_life(entry.name);
  out.comm = entry.context.comm;
  out.ext = entry.context.ext;
  out.dir = entry.context.dir;
  if (const auto pages = seen.lifetime_pages()) {
    out.lifetime_bytes = static_cast<uint64_t>(*pages * kBlockSize);
    out.lifetime_ms = lifetime_ms(*pages);
    const Limits limits = lifetime_limits(seen.exposure, seen.deaths);
    out.lifetime_low_bytes = static_cast<uint64_t>(limits.low * kBlockSize);
    out.lifetime_high_bytes = static_cast<uint64_t>(limits.high * kBlockSize);
  }
  out.expected_bytes = static_cast<uint64_t>(std::max(0.0, seen.expected_pages) * kBlockSize);
  if (out.lifetime_ms == 0) out.lifetime_ms = entry.saved.lifetime_ms;
  out.written_bytes = seen.written_pages * kBlockSize;
  out.live_bytes = seen.live_pages * kBlockSize;
  out.dead_bytes = seen.dead_pages * kBlockSize;
  out.pstream = plain_route(vstream);
  return out;
}

PStreamId PlacementImpl::plain_route(VStreamId vstream) const {
  return route(vstream, kLongRequest, 0, wire::kAgeNew);
}

std::optional<BlockBirth> PlacementImpl::birth(BlockNo block) {
  const auto found = lifetimes_.birth(block);
  if (!found) return std::nullopt;
  const VStreamId vstream = table_.shown(found->vstream);
  return BlockBirth{vstream, plain_route(vstream), found->clock, lifetimes_.now()};
}

std::optional<VStreamInfo> PlacementImpl::info(VStreamId vstream) {
  const VStreamId shown = table_.shown(vstream);
  const auto entry = table_.find(shown);
  if (!entry && shown != kDefaultVStream) return std::nullopt;
  const bool of_many = !entry || entry->source == Source::kContext;
  return measure(shown, entry.value_or(VStreamTable::Entry{}),
                 of_many ? table_.seen(shown) : lifetimes_.seen(shown));
}

std::vector<VStreamInfo> PlacementImpl::all() {
  auto seen = table_.seen();
  std::vector<VStreamInfo> out{measure(kDefaultVStream, {}, seen[kDefaultVStream.value])};
  for (const VStreamId v : table_.used()) {
    if (const auto entry = table_.find(v)) out.push_back(measure(v, *entry, seen[v.value]));
  }
  return out;
}

std::string PlacementImpl::describe(VStreamId vstream) {
  const auto entry = table_.find(vstream);
  return entry && !entry->name.empty() ? entry->name : std::to_string(vstream.value);
}

std::optional<VStreamId> PlacementImpl::known_to(const learning::PlacementModel& model,
                                                 VStreamId shown) const {
  for (const VStreamId v : {shown, table_.parent(shown)}) {
    if (table_.born_clock(v) <= model.clock_pages()) return v;
  }
  return std::nullopt;
}

PStreamId PlacementImpl::route(VStreamId vstream, uint32_t request_pages, uint32_t offset,
                               uint8_t age) const {
  if (options_.mode == Mode::kOff) return kDefaultPStream;
  const VStreamId shown = table_.shown(vstream);
  const auto model = model_->read();
  const auto known = model ? known_to(*model, shown) : std::nullopt;
  if (!known) return table_.pstream(shown);
  return model->in_table(*known, wire::shape_of(request_pages, offset, age));
}

PStreamId PlacementImpl::epoch_route(VStreamId vstream, BlockNo block, PStreamId first) const {
  if (options_.mode == Mode::kOff) return kDefaultPStream;
  const VStreamId shown = table_.shown(vstream);
  const auto model = model_->read();
  const auto known = model ? known_to(*model, shown) : std::nullopt;
  if (!known) return table_.pstream(shown);
  if (model->is_logistic()) return first;
  const uint8_t chunk_class = learning::ChunkMap{model->chunks()}.of(block.value);
  return model->in_table(*known, wire::shape_of(kLongRequest, 0, wire::kAgeNew, chunk_class));
}

void PlacementImpl::route_run(const PageRun& run, bool overwrite, Cursor& cursor,
                              std::vector<RoutedRun>& out) const {
  const uint64_t now = lifetimes_.now();
  const VStreamId shown = table_.shown(run.vstream);
  const auto model = model_->read();
  const auto known = model ? known_to(*model, shown) : std::nullopt;
  const PStreamId unlearned = options_.mode == Mode::kOff ? kDefaultPStream : table_.pstream(shown);
  learning::Request request{.page = run.block.value,
                            .pages = run.pages,
                            .whole_pages = run.request_pages,
                            .offset = run.offset,
                            .vstream = known.value_or(shown).value,
                            .file_place = run.file_place};
  for (uint32_t i = 0; i < run.pages; ++i) {
    const uint8_t age = overwrite ? ages_.age_class(run.block.value + i, now) : wire::kAgeNew;
    request.age = age;
    const PStreamId stream = known ? model->place(request, i, cursor) : unlearned;
    if (i > 0 && out.back().stream == stream && out.back().age == age) {
      ++out.back().pages;
    } else {
      out.push_back({run.offset + i, 1, stream, age});
    }
  }
}

void PlacementImpl::wrote(const PageRun& run, PStreamId stream, uint8_t age) {
  const uint64_t clock = lifetimes_.born(run.block, run.pages, run.vstream);
  table_.wrote(run.vstream, clock);
  ages_.wrote(run.block.value, run.pages, clock);
  const VStreamId shown = table_.shown(run.vstream);
  telemetry_->record({clock, run.block.value, run.pages, run.request_pages, run.offset,
                      now_ms_.load(std::memory_order_relaxed), shown.value, stream.value,
                      age == wire::kAgeNew ? TelemetryKind::kNew : TelemetryKind::kOverwrite, age,
                      table_.generation_of(shown), run.file_place});
  telemetry_->set_clock(clock + run.pages);
}

void PlacementImpl::grow(uint64_t capacity_blocks) {
  lifetimes_.grow(capacity_blocks);
  telemetry_->set_capacity_blocks(capacity_blocks);
}

void PlacementImpl::trimmed(BlockNo first, uint64_t pages) {
  lifetimes_.died(first, pages);
  const auto count =
      static_cast<uint32_t>(std::min<uint64_t>(pages, std::numeric_limits<uint32_t>::max()));
  telemetry_->record({lifetimes_.now(),
                      first.value,
                      count,
                      count,
                      0,
                      now_ms_.load(std::memory_order_relaxed),
                      0,
                      0,
                      TelemetryKind::kTrim,
                      wire::kAgeNew,
                      0,
                      {}});
}

Result<std::string> PlacementImpl::adopt_stored(const std::string& path) {
  const std::string file = stored_model_path(path, options_.uuid);
  const auto named = [&](const Error& error) {
    return Error{error.code, file + ": " + error.context};
  };
  const MutexLock lock(tick_mutex_);
  const auto stored = read_stored_model(file, options_.uuid);
  if (!stored) return named(stored.error());
  const auto adopted = model_->adopt_stored((*stored)->model);
  if (!adopted) return named(adopted.error());
  // The vStreams that META had were born at clock 0, up to which the model has learned.
  for (const VStreamId v : table_.used()) {
    const bool same = (*stored)->uses[v.value] == table_.generation_of(v) + 1;
    if (!same) table_.set_born_clock(v, lifetimes_.now());
  }
  return *adopted + " from " + file;
}

Placement::SharedMemory PlacementImpl::shared_memory() {
  return {telemetry_->memory().fd(), model_->memory().fd(), telemetry_->memory().size(),
          model_->memory().size()};
}

// Maps vStreams to pStreams. If they are few, each gets a pStream of its own, and the default one
// is left to data whose lifetime is not known.
void PlacementImpl::remap() {
  std::vector<learning::Sample> samples;
  std::vector<bool> taken(options_.pstream_count, false);
  taken[0] = true;
  auto seen = table_.seen();
  const auto look_at = [&](VStreamId v) {
    const LifetimeTable::Seen& its = seen[v.value];
    if (const auto pages = lifetimes_.estimate_pages(its)) {
      samples.push_back({v, *pages, its.recent_pages});
    } else {
      taken[table_.pstream(v).value] = true;  // labelled, and written too little to be moved
    }
  };
  look_at(kDefaultVStream);
  for (const VStreamId v : table_.used()) look_at(v);
  if (options_.pstream_count < 2 || samples.empty()) return;
  std::vector<PStreamId> streams;  // by rank
  for (uint32_t rank = 0; rank < options_.pstream_count; ++rank) {
    const PStreamId stream = learning::pstream_of_rank(rank, options_.pstream_count);
    if (!taken[stream.value]) streams.push_back(stream);
  }
  if (samples.size() > streams.size()) {
    streams.clear();
    for (uint32_t rank = 0; rank < options_.pstream_count; ++rank) {
      streams.push_back(learning::pstream_of_rank(rank, options_.pstream_count));
    }
  }
  const auto k = static_cast<uint32_t>(streams.size());
  const std::vector<uint32_t> ranks = learning::cluster_by_lifetime(samples, k);
  for (size_t i = 0; i < samples.size(); ++i) {
    table_.set_pstream(samples[i].vstream, streams[ranks[i]]);
  }
}

std::optional<std::string> PlacementImpl::tick() {
  MutexLock lock(tick_mutex_);
  const uint64_t now_ms = clock_.monotonic_ms();
  now_ms_.store(static_cast<uint32_t>(now_ms), std::memory_order_relaxed);
  {
    MutexLock scale(scale_mutex_);
    scale_.sample(lifetimes_.now(), now_ms);
  }
  lifetimes_.sweep();
  if (lifetimes_.now() - remapped_at_ >= options_.remap_pages) {
    remapped_at_ = lifetimes_.now();
    lifetimes_.close_window();
    remap();
  }
  if (lifetimes_.now() - split_at_ >= kSplitPages) {
    split_at_ = lifetimes_.now();
    table_.split_contexts(split_at_);
  }
  std::optional<std::string> said;
  if (options_.mode != Mode::kOff) said = model_->adopt();
  const Result<void> saved =
      table_.save_changed(kSavesPerTick, [&](VStreamId v, SavedVStream& out) {
        const auto pages = lifetimes_.lifetime_pages(v);
        if (pages) out.lifetime_bytes = static_cast<uint64_t>(*pages * kBlockSize);
        if (pages) out.lifetime_ms = lifetime_ms(*pages);
        out.written_bytes = lifetimes_.written_pages(v) * kBlockSize;
      });
  if (!saved.ok() && !said) said = "vStreams not stored: " + saved.error().message();
  return said;
}

std::vector<PStreamId> PlacementImpl::take_released() {
  const MutexLock lock(tick_mutex_);
  return model_->take_released();
}

ModelStatus PlacementImpl::model_status() {
  ModelStatus out = model_->status();
  out.telemetry_records = telemetry_->records();
  return out;
}

std::vector<uint8_t> PlacementImpl::chunk_classes() {
  const auto model = model_->read();
  if (!model) return {};
  const std::span<const uint8_t> all = model->chunks();
  size_t end = all.size();
  while (end > 0 && all[end - 1] == 0) --end;
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

Result<Mode> parse_mode(std::string_view name) {
  for (const Mode mode :
       {Mode::kOff, Mode::kLearned, Mode::kHints, Mode::kAuto, Mode::kPassthrough}) {
    if (name == to_string(mode)) return mode;
  }
  return Error{EINVAL, "placement mode '" + std::string(name) +
                           "' (off, learned, hints, auto or passthrough)"};
}

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::kOff:
      return "off";
    case Mode::kLearned:
      return "learned";
    case Mode::kHints:
      return "hints";
    case Mode::kPassthrough:
      return "passthrough";
    case Mode::kAuto:
      break;
  }
  return "auto";
}

std::string_view to_string(Source source) {
  constexpr std::string_view kNames[] = {"default", "hint",    "directory",
                                         "rule",    "context", "internal"};
  const auto index = static_cast<size_t>(source);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

}  // namespace streamfs::placement
