#include "fuse-fs/data/trim_queue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"
#include "trace/trace.h"

namespace streamfs::data {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint64_t kTrimRests = 9;  // while programs are at work
constexpr std::chrono::milliseconds kTrimRestMost{100}, kTrimNap{5};
// How long a caller that needs room, and an unmount, wait for trims.
constexpr std::chrono::milliseconds kRoomMost{100}, kLeaveMost{2000};

int64_t now_ns() {
  return std::chrono::nanoseconds(SteadyClock::now().time_since_epoch()).count();
}

}  // namespace

TrimQueue::TrimQueue(pmem::Region& region, meta::Engine& engine, blockdev::Device& device,
                     placement::Placement& placement, Conditions& conditions, Health& health,
                     TraceRecorder& trace, bool discard, const Activity& activity)
    : region_(region),
      engine_(engine),
      device_(device),
      placement_(placement),
      conditions_(conditions),
      health_(health),
      trace_(trace),
      discard_(discard),
      activity_(activity) {}

TrimQueue::Haste::Haste(TrimQueue& queue, Pace pace) : queue_(queue), pace_(pace) {
  if (pace_ == Pace::kGivesWay) return;
  ++queue_.hurried_;
  if (pace_ == Pace::kForRoom && queue_.short_of_room_++ == 0) queue_.short_since_ = now_ns();
  if (pace_ == Pace::kLeaves && queue_.leaving_since_ == 0) queue_.leaving_since_ = now_ns();
}

TrimQueue::Haste::~Haste() {
  if (pace_ == Pace::kGivesWay) return;
  --queue_.hurried_;
  if (pace_ == Pace::kForRoom) --queue_.short_of_room_;
}

bool TrimQueue::waited_for_room() const {
  return short_of_room_ > 0 && std::chrono::nanoseconds(now_ns() - short_since_) > kRoomMost;
}

bool TrimQueue::cut_short() const {
  const int64_t leaving = leaving_since_;
  return short_of_room_ > 0 ||
         (leaving != 0 && std::chrono::nanoseconds(now_ns() - leaving) > kLeaveMost);
}

bool TrimQueue::pressed() const {
  const meta::Space space = engine_.space();
  return space.free_blocks < space.data_blocks / kPressedShare;
}

Result<void> TrimQueue::drain(Pace pace) {
  if (pending_blocks() == 0) return {};
  const Haste haste(*this, pace);
  Result<void> done;
  do {
    done = passes_.run([this] { return pass(); });
  } while (done.ok() && pace == Pace::kNow && last_was_cut_ && leaving_since_ == 0);
  return done;
}

Result<void> TrimQueue::pass() {
  bool cut = !trim_unnamed();
  last_was_cut_ = cut;
  if (pending_blocks() == 0) return {};
  engine_.journal().checkpoint();
  TxId home = engine_.journal().watermark();
  const std::optional<TxId> settled = conditions_.settled();
  if (settled && hurried_ == 0 && !pressed())
    home = std::min(home, *settled);  // a round for this alone would write what is about to die
  else
    SFS_TRY(durable_or_read_only(conditions_.settle(engine_.journal().last()), health_));
  engine_.blocks().release_up_to(home);
  std::vector<meta::BlockRun> batch;
  while (next_batch(batch)) {
    meta::Transaction tx(region_);
    for (const meta::BlockRun& run : batch) {
      trim(run);
      tx.run(run.first, run.count, meta::RunKind::kTrimmed);
    }
    const Result<TxId> committed = engine_.journal().commit(tx);
    if (!committed.ok()) {
      health_.degrade("trimmed blocks not journalled: " + committed.error().message());
      return committed.error();
    }
    for (const meta::BlockRun& run : batch) engine_.blocks().trimmed(run);
    join_leftovers(batch);
    cut = cut_short();
    if (cut) break;
  }
  last_was_cut_ = cut;
  if (const uint64_t blocks = untrimmed_blocks_.exchange(0); blocks > 0)
    spdlog::info("{} free blocks were not trimmed: a program waited for room", blocks);
  return {};
}

uint64_t TrimQueue::blocks_a_trim() const {
  const uint64_t unit = std::max<uint64_t>(device_.info().erase_unit_blocks, 1);
  return std::max(unit, round_down(kTrimBlocksMax, unit));
}

bool TrimQueue::trim_unnamed() {
  const uint64_t most = blocks_a_trim();
  for (uint64_t left = pending_blocks(); left > 0;) {  // later blocks are left to the next pass
    const auto run = engine_.blocks().next_discard(most);
    if (!run) return true;
    left -= std::min(left, run->count);
    trim(*run);
    engine_.blocks().trimmed(*run);
    join_leftovers({&*run, 1});
    if (cut_short()) return false;
  }
  return true;
}

bool TrimQueue::next_batch(std::vector<meta::BlockRun>& batch) {
  const uint64_t most = blocks_a_trim();
  batch.clear();
  const size_t runs = short_of_room_ > 0 || leaving_since_ != 0 ? kHastyRuns : kBatchRuns;
  while (batch.size() < runs) {
    const auto run = engine_.blocks().next_trim(most);
    if (!run) break;
    batch.push_back(*run);
  }
  return !batch.empty();
}

void TrimQueue::trim(const meta::BlockRun& run) {
  placement_.trimmed(run.first, run.count);
  trace_.record(trace::TraceOp::kTrim, run.first, run.count, kDefaultVStream, kDefaultVStream,
                trace_.next_request(), kDefaultPStream);
  if (!discard_.load(std::memory_order_relaxed)) return;
  if (waited_for_room()) {
    untrimmed_blocks_ += run.count;
    return;
  }
  const auto begun = SteadyClock::now();
  const Result<void> done = device_.trim(run.first, run.count);
  if (done.ok()) return give_way(static_cast<uint64_t>((SteadyClock::now() - begun).count()));
  spdlog::warn("trim of {} blocks at {}: {}", run.count, run.first.value, done.error().message());
  if (done.error().code == EOPNOTSUPP) discard_.store(false, std::memory_order_relaxed);
}

// Trims whole units that runs of a batch cover in part, if the rest is free. A unit with several
// runs is trimmed once.
void TrimQueue::join_leftovers(std::span<const meta::BlockRun> runs) {
  const blockdev::DeviceInfo& info = device_.info();
  const uint64_t unit = info.trim_unit_blocks, offset = info.trim_offset_blocks;
  if (unit <= 1 || !discard_.load(std::memory_order_relaxed)) return;
  std::set<uint64_t> cut;  // units that a run begins or ends in the middle of
  for (const meta::BlockRun& run : runs) {
    for (const uint64_t end : {run.first.value, run.first.value + run.count}) {
      if (end > offset && (end - offset) % unit != 0)
        cut.insert(offset + round_down(end - offset, unit));
    }
  }
  for (const uint64_t first : cut) trim_unit(first, unit);
}

// Trims a unit only if there is plenty of room, because writers cannot have these blocks meanwhile.
void TrimQueue::trim_unit(uint64_t first, uint64_t unit) {
  const meta::BlockRun run{BlockNo{first}, unit};
  if (short_of_room_ > 0 || engine_.blocks().free_blocks() < kPressedShare * unit) return;
  if (!engine_.blocks().reserve_exactly(run)) return;
  const Result<void> done = device_.trim(run.first, run.count);
  engine_.blocks().cancel(run);
  if (!done.ok()) spdlog::debug("trim of a joined unit: {}", done.error().message());
}

void TrimQueue::give_way(uint64_t worked_ns) {
  const uint64_t now = activity_.begun();
  if (seen_traffic_.exchange(now) == now || hurried_ > 0 || pressed()) return;
  const auto until =
      SteadyClock::now() + std::min<SteadyClock::duration>(
                               std::chrono::nanoseconds(kTrimRests * worked_ns), kTrimRestMost);
  while (hurried_ == 0 && SteadyClock::now() < until)
    std::this_thread::sleep_for(
        std::min<SteadyClock::duration>(kTrimNap, until - SteadyClock::now()));
}

// Trims free blocks. A run is reserved while it is trimmed, so no file has it. It is never more
// than a quarter of the free blocks, so that writers find room.
Result<FreeTrim> TrimQueue::trim_free(BlockNo from, const std::function<bool()>& stop) {
  FreeTrim out;
  for (BlockNo at = from;;) {
    const uint64_t most = std::min(kTrimBlocksMax, engine_.blocks().free_blocks() / 4);
    const auto run = engine_.blocks().reserve_free(at, std::max<uint64_t>(most, 1));
    if (!run) return out;
    const auto begun = SteadyClock::now();
    const Result<void> done = device_.trim(run->first, run->count);
    engine_.blocks().cancel(*run);
    if (!done.ok()) return done.error();
    out.bytes += run->count * kBlockSize;
    at = BlockNo{run->first.value + run->count};
    if (stop()) {
      out.next = at;
      return out;
    }
    give_way(static_cast<uint64_t>((SteadyClock::now() - begun).count()));
  }
}

}  // namespace streamfs::data
