#include "fuse-fs/data/scrub.h"

#include <fmt/format.h>
#include <spdlog/common.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/event.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/meta/engine.h"

namespace streamfs::data {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint64_t kChunkBlocks = 256, kChunkBytes = kChunkBlocks * kBlockSize;
constexpr size_t kInodesAtOnce = 64;
constexpr size_t kFindingsKept = 100;
constexpr uint64_t kRestsPerWork = 9;  // while programs are at work
constexpr std::chrono::milliseconds kNap{20};

}  // namespace

Result<void> Scrub::start() {
  const MutexLock starting(starting_);
  {
    const MutexLock lock(mutex_);
    if (status_.state == ScrubStatus::State::kRunning) return Error{EBUSY, "a scrub is under way"};
    status_ = {};
    status_.state = ScrubStatus::State::kRunning;
    const meta::Space space = core_.engine.space();
    status_.inodes_in_all = space.inodes_possible - space.inodes_free;
  }
  if (thread_.joinable()) thread_.join();
  stopping_ = false;
  mended_before_ = core_.engine.mended();
  thread_ = std::thread([this] { run(); });
  return {};
}

void Scrub::stop() {
  const MutexLock starting(starting_);
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

ScrubStatus Scrub::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

void Scrub::run() {
  InodeId at{0};
  for (;;) {
    const std::vector<InodeId> some = core_.engine.inodes_after(at, kInodesAtOnce);
    for (const InodeId id : some) {
      if (stopping_) break;
      visit(id);
      at = id;
    }
    if (some.empty() || stopping_) break;
  }
  const Result<void> maps = core_.engine.verify_maps();
  if (!maps.ok()) damaged(InodeId{0}, maps.error().context);
  const MutexLock lock(mutex_);
  status_.state = stopping_ ? ScrubStatus::State::kStopped : ScrubStatus::State::kDone;
  log_event(Event::kScrubDone, status_.damaged == 0 ? spdlog::level::info : spdlog::level::err,
            fmt::format("scrub {}: {} inodes, {} bytes, {} damaged, {} mended",
                        stopping_ ? "stopped" : "done", status_.inodes, status_.bytes,
                        status_.damaged, status_.mended));
}

void Scrub::visit(InodeId id) {
  const auto begun = SteadyClock::now();
  const Result<void> sound = core_.engine.verify(id);
  give_way(static_cast<uint64_t>((SteadyClock::now() - begun).count()));
  if (sound.ok()) {
    const Result<meta::Attributes> now = core_.engine.attributes(id);
    if (now.ok() && S_ISREG(now->mode)) read_data(id, now->size);
    core_.states.release(id, core_.epochs.flushed());
  } else if (sound.error().code != ESTALE) {
    damaged(id, sound.error().message());
  }
  const uint64_t mended = core_.engine.mended() - mended_before_;
  const MutexLock lock(mutex_);
  status_.mended = mended;
  ++status_.inodes;
}

void Scrub::read_data(InodeId id, uint64_t size) {
  std::vector<blockdev::BlockBuffer> buffer(kChunkBlocks);
  const Bytes chunk = std::as_writable_bytes(std::span(buffer));
  for (uint64_t at = 0; at < size && !stopping_;) {
    const Result<FileBlock> data = core_.engine.seek_data(id, FileBlock{at / kBlockSize});
    if (!data.ok()) return;  // only a hole is left, or the file is gone
    at = std::max(at, data->value * kBlockSize);
    const auto begun = SteadyClock::now();
    const Result<size_t> got = path_.read(id, at, chunk);
    if (!got.ok()) find_bad_blocks(id, at, std::min(kChunkBytes, size - at));
    if (got.ok() && *got == 0) return;  // shorter by now
    {
      const MutexLock lock(mutex_);
      status_.bytes += got.ok() ? *got : 0;
    }
    at += kChunkBytes;
    give_way(static_cast<uint64_t>((SteadyClock::now() - begun).count()));
  }
}

void Scrub::find_bad_blocks(InodeId id, uint64_t offset, uint64_t length) {
  blockdev::BlockBuffer block;
  for (uint64_t at = offset; at < offset + length && !stopping_; at += kBlockSize) {
    const Result<size_t> got = path_.read(id, at, block.bytes);
    if (!got.ok()) damaged(id, fmt::format("data at offset {}: {}", at, got.error().message()));
    const MutexLock lock(mutex_);
    status_.bytes += got.ok() ? *got : 0;
  }
}

void Scrub::damaged(InodeId id, std::string what) {
  log_event(Event::kDataDamaged, spdlog::level::err,
            fmt::format("scrub: inode {}: {}", id.value, what));
  const MutexLock lock(mutex_);
  ++status_.damaged;
  if (status_.findings.size() < kFindingsKept) status_.findings.push_back({id, std::move(what)});
}

void Scrub::give_way(uint64_t worked_ns) {
  const uint64_t now = traffic_();
  if (std::exchange(seen_traffic_, now) == now) return;
  const auto until = SteadyClock::now() + std::chrono::nanoseconds(kRestsPerWork * worked_ns);
  while (!stopping_ && SteadyClock::now() < until)
    std::this_thread::sleep_for(std::min<SteadyClock::duration>(kNap, until - SteadyClock::now()));
}

}  // namespace streamfs::data
