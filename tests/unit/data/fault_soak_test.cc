// A device that goes wrong in every way, under a mixed workload through the data path: nothing
// hangs, nothing reads as what it never was, no read fails without a reason, and whatever went
// wrong was told to whoever asked, or logged. STREAMFS_LONG: 10,000 faults instead of 1,000.
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

using blockdev::Storm;

constexpr uint64_t kSector = 512;
constexpr uint64_t kSectors = 400;  // of a file, at most
constexpr size_t kWriters = 3;
constexpr int kStepsOfRound = 400;
constexpr uint32_t kOneIn = 12;

// Failures in this thread's requests since the last look.
thread_local int failures_here = 0;

// Counts what the log says of trims, and keeps the rest of a storm's noise off the terminal.
class TrimsLogged final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::atomic<uint64_t> count{0};

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    if (text.starts_with("trim of ")) ++count;
  }
  void flush_() override {}
};

// A file whose every sector holds one number, repeated; and which numbers it may hold. A write that
// failed leaves its sectors with either.
class Stamped {
 public:
  // `syncs`: steps call fsync, too.
  Stamped(FilesystemImpl& fs, InodeId id, uint64_t seed, bool syncs)
      : fs_(&fs), id_(id), random_(seed), syncs_(syncs) {}

  void step() {
    if (syncs_ && random_() % 4 == 0) return sync();
    switch (random_() % 8) {
      case 0:
        return punch();
      case 1:
        return truncate();
      case 2:
      case 3:
        return check(random_() % kSectors, 1 + random_() % 60);
      default:
        return write();
    }
  }

  // A sector holds one of its allowed values, and keeps it from now on: the device has settled.
  void check(uint64_t first, uint64_t count) {
    std::vector<uint64_t> words(count * kSector / 8);
    failures_here = 0;
    const Result<size_t> got = fs_->read(
        id_, first * kSector, {reinterpret_cast<std::byte*>(words.data()), count * kSector});
    ASSERT_EQ(got.ok(), failures_here == 0) << "sectors " << first << " + " << count;
    if (!got.ok()) return;
    const uint64_t there = size_ > first ? std::min(count, size_ - first) : 0;
    ASSERT_EQ(*got, there * kSector);
    for (uint64_t s = 0; s < there; ++s) {
      const auto sector = words.begin() + static_cast<int64_t>(s * kSector / 8);
      ASSERT_TRUE(
          std::all_of(sector, sector + kSector / 8, [&](uint64_t w) { return w == *sector; }))
          << "sector " << first + s << " is torn";
      std::set<uint64_t>& allowed = allowed_[first + s];
      ASSERT_TRUE(allowed.empty() ? *sector == 0 : allowed.contains(*sector))
          << "sector " << first + s << " holds " << *sector;
      allowed = {*sector};
    }
  }
  void check_all() { check(0, kSectors + 60); }

  // The size after a remount that may not have seen the last write.
  void reopen(FilesystemImpl& fs) {
    fs_ = &fs;
    size_ = fs.attributes(id_)->size / kSector;
    allowed_.erase(allowed_.lower_bound(size_), allowed_.end());
  }
  // A write, of which the next flush says that it may be lost.
  void write_what_may_be_lost() {
    const auto before = allowed_;
    write();
    for (auto& [sector, allowed] : allowed_) {
      const auto old = before.find(sector);
      if (old == before.end() || old->second.empty())
        allowed.insert(0);
      else
        allowed.insert(old->second.begin(), old->second.end());
    }
  }
  InodeId id() const { return id_; }

 private:
  void write() {
    const uint64_t first = random_() % kSectors;
    const uint64_t count = std::min(1 + random_() % 80, kSectors - first);
    const uint64_t stamp = id_.value << 32 | ++stamps_;
    const std::vector<uint64_t> words(count * kSector / 8, stamp);
    failures_here = 0;
    const Result<void> done = fs_->write(
        id_, first * kSector, {reinterpret_cast<const std::byte*>(words.data()), count * kSector});
    expect_told(done);
    for (uint64_t s = first; s < first + count; ++s) {
      std::set<uint64_t>& allowed = allowed_[s];
      if (done.ok()) {
        allowed = {stamp};
      } else if (s < size_) {
        if (allowed.empty()) allowed.insert(0);
        allowed.insert(stamp);
      }
    }
    if (done.ok()) size_ = std::max(size_, first + count);
    allowed_.erase(allowed_.lower_bound(size_), allowed_.end());
  }

  // Checks that a call fails only if one of its requests failed, and succeeds only if none did.
  // With an intent log a write may run a round, whose requests carry other files' data. The write
  // may then succeed although a request failed.
  void expect_told(const Result<void>& done) const {
    if (done.ok())
      EXPECT_TRUE(failures_here == 0 || syncs_);
    else
      EXPECT_GT(failures_here, 0) << done.error().message();
  }

  // An fsync may fail because of another thread's data. The file's own content does not change.
  void sync() {
    if (random_() % 16 == 0)
      (void)fs_->sync();
    else
      (void)fs_->fsync(id_, random_() % 2 == 0);
  }

  void punch() {
    const uint64_t first = random_() % kSectors, count = 1 + random_() % 60;
    failures_here = 0;
    const Result<void> done = fs_->allocate(id_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                            first * kSector, count * kSector);
    expect_told(done);
    for (uint64_t s = first; s < std::min(first + count, size_); ++s) {
      if (done.ok())
        allowed_[s] = {0};
      else if (!allowed_[s].empty())
        allowed_[s].insert(0);
    }
  }

  void truncate() {
    const uint64_t to = random_() % kSectors;
    failures_here = 0;
    const Result<void> done = fs_->truncate(id_, to * kSector);
    expect_told(done);
    const uint64_t size = fs_->attributes(id_)->size / kSector;
    ASSERT_TRUE(size == size_ || size == to);
    if (done.ok()) {
      ASSERT_EQ(size, to);
    }
    // The cut part of a block is zeroed first.
    const uint64_t block_end = round_up(to, kBlockSize / kSector);
    for (uint64_t s = to; s < std::min(block_end, size) && !done.ok(); ++s)
      if (!allowed_[s].empty()) allowed_[s].insert(0);
    size_ = size;
    allowed_.erase(allowed_.lower_bound(size), allowed_.end());
  }

  FilesystemImpl* fs_;
  const InodeId id_;
  std::mt19937_64 random_;
  const bool syncs_;
  uint64_t size_ = 0;  // sectors
  uint64_t stamps_ = 0;
  std::map<uint64_t, std::set<uint64_t>> allowed_;  // by sector; none: zero
};

class Soak {
 public:
  explicit Soak(Rig::Options options) {
    options.volatile_cache = false;
    rig_ = std::make_unique<Rig>(options);
    const bool syncs = options.intent_log_bytes > 0;
    for (size_t w = 0; w < kWriters; ++w)
      files_.emplace_back(rig_->fs(), rig_->create("f" + std::to_string(w)), 100 + w, syncs);
  }

  void round(uint64_t seed) {
    storm(seed, kOneIn);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (Stamped& file : files_)
      threads.emplace_back([&] {
        for (int i = 0; i < kStepsOfRound && !testing::Test::HasFatalFailure(); ++i) file.step();
      });
    std::thread bystander([&] { read_along(over); });
    for (std::thread& thread : threads) thread.join();
    over = true;
    bystander.join();
    storm(seed, 2);
    (void)rig_->fs().maintenance().reclaim();  // trims
    rig_->device().set_storm({});
    for (Stamped& file : files_) file.check_all();
  }

  // A flush that failed is final: until the next mount nothing is promised, and reads go on.
  void fail_a_flush(uint64_t seed) {
    ASSERT_TRUE(rig_->fs().sync().ok());
    Stamped& file = files_[seed % kWriters];
    file.write_what_may_be_lost();
    rig_->device().set_faults({.fail_flushes_after = 0});
    ASSERT_FALSE(rig_->fs().sync().ok());
    ++flushes_failed;
    rig_->device().set_faults({});
    ASSERT_EQ(rig_->fs().write(file.id(), 0, std::vector<std::byte>(10)).error().code, EROFS);
    ASSERT_TRUE(rig_->fs().status()->degraded_read_only);
    rig_->power_cut(seed);
    for (Stamped& each : files_) {
      each.reopen(rig_->fs());
      each.check_all();
    }
  }

  uint64_t faults() const {
    uint64_t all = flushes_failed;
    for (const std::atomic<uint64_t>& kind : kinds_) all += kind;
    return all;
  }
  void print(const TrimsLogged& log) const {
    std::printf("%lu faults:", static_cast<unsigned long>(faults()));
    for (size_t k = 0; k < Storm::kKinds; ++k)
      std::printf(" %lu %s,", static_cast<unsigned long>(kinds_[k]), Storm::kNames[k]);
    std::printf(" %u failed flushes; %lu trims logged, %lu reads beside writers\n", flushes_failed,
                static_cast<unsigned long>(log.count), static_cast<unsigned long>(reads_along_));
  }
  uint64_t of(Storm::Kind kind) const { return kinds_[kind]; }
  uint64_t reads_along() const { return reads_along_; }
  uint32_t flushes_failed = 0;

 private:
  void storm(uint64_t seed, uint32_t one_in) {
    // A fault in the metadata log is final, as one of a flush is.
    const uint64_t first = rig_->super().first_data_block;
    rig_->device().set_storm({.seed = seed,
                              .one_in = one_in,
                              .first_block = first,
                              .on_fault = [this](Storm::Kind kind) {
                                ++kinds_[kind];
                                if (kind != Storm::kStuck && kind != Storm::kTrimError)
                                  ++failures_here;
                              }});
  }

  // Reads what others overwrite: whole sectors of that file, and no error that was not injected.
  void read_along(const std::atomic<bool>& over) {
    std::mt19937_64 random(7);
    std::vector<uint64_t> words(60 * kSector / 8);
    while (!over) {
      const InodeId id = files_[random() % kWriters].id();
      failures_here = 0;
      const Result<size_t> got =
          rig_->fs().read(id, random() % kSectors * kSector,
                          {reinterpret_cast<std::byte*>(words.data()), words.size() * 8});
      ASSERT_EQ(got.ok(), failures_here == 0) << (got.ok() ? "" : got.error().message());
      for (size_t w = 0; got.ok() && w < *got / 8; ++w) {
        ASSERT_EQ(words[w], words[w - w % (kSector / 8)]);
        ASSERT_TRUE(words[w] == 0 || words[w] >> 32 == id.value);
      }
      ++reads_along_;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  std::unique_ptr<Rig> rig_;
  std::vector<Stamped> files_;
  std::array<std::atomic<uint64_t>, Storm::kKinds> kinds_{};
  std::atomic<uint64_t> reads_along_{0};
};

void soak_in_faults(const Rig::Options& options) {
  const uint64_t wanted = std::getenv("STREAMFS_LONG") != nullptr ? 10'000 : 1'000;
  const auto log = std::make_shared<TrimsLogged>();
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("soak", log));
  Soak soak(options);
  for (uint64_t seed = 1; soak.faults() < wanted && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("round " + std::to_string(seed));
    soak.round(seed);
    if (!testing::Test::HasFatalFailure()) soak.fail_a_flush(seed);
  }
  spdlog::set_default_logger(before);
  soak.print(*log);
  for (size_t kind = 0; kind < Storm::kKinds; ++kind)
    EXPECT_GT(soak.of(static_cast<Storm::Kind>(kind)), 0U) << Storm::kNames[kind];
  EXPECT_EQ(log->count, soak.of(Storm::kTrimError));
  EXPECT_GT(soak.reads_along(), 0U);
}

TEST(FaultSoak, NothingHangsNothingReadsWrongAndEveryErrorIsTold) {
  soak_in_faults({});
}

TEST(FaultSoak, WithAnIntentLogAsWell) {
  soak_in_faults(Rig::with_intent_log());
}

}  // namespace
}  // namespace streamfs::data
