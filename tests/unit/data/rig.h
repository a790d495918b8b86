// A filesystem on simulated hardware that a test can cut the power of and mount again.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/format_pair.h"
#include "fuse-fs/pair/log_blocks.h"
#include "fuse-fs/pair/pair.h"
#include "tests/unit/data/ram_device.h"

namespace streamfs::data {

class RigClock final : public Clock {
 public:
  Timestamp now() override { return {static_cast<int64_t>(1'700'000'000 + ms / 1000), 0}; }
  uint64_t monotonic_ms() override { return ms; }
  std::atomic<uint64_t> ms{1000};
};

// META that forgets, as DATA's cache does: what was not flushed and fenced is old or new after a
// cut, word by word.
class ForgetfulRegion final : public pmem::Region {
 public:
  explicit ForgetfulRegion(const pmem::Region& from)
      : words_(words_of(from)), class_(from.meta_class()), durable_(words_) {
    attach(reinterpret_cast<std::byte*>(words_.data()), from.size());
  }
  pmem::MetaClass meta_class() const override { return class_; }
  // Takes the state at this moment for the cut; what comes later is lost whole.
  void freeze() {
    const MutexLock lock(mutex_);
    if (!frozen_.empty()) return;
    frozen_ = words_;
    frozen_durable_ = durable_;
  }
  void before_fence(std::function<void()> call) { before_fence_ = std::move(call); }
  // Which unfenced words a cut loses; without it, half of them.
  void lose(std::function<bool(uint64_t offset)> loses) { loses_ = std::move(loses); }
  void forget(uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto lost = [&](size_t word) {
      return loses_ ? loses_(word * kWordSize) : random() % 2 == 0;
    };
    const MutexLock lock(mutex_);
    if (!frozen_.empty()) {
      std::ranges::copy(frozen_, words_.begin());
      durable_ = frozen_durable_;
    }
    // Not words_[i], which is a call where nothing is optimized.
    uint64_t* const now = words_.data();
    const uint64_t* const then = durable_.data();
    for (size_t i = 0, end = words_.size(); i < end; ++i) {
      if (now[i] != then[i] && lost(i)) now[i] = then[i];
    }
  }

 protected:
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t offset) override {
    const MutexLock lock(mutex_);
    Line& line = flushed_[offset / kWordSize];
    for (uint64_t at = offset; uint64_t& word : line) {
      word = load(at);
      at += kWordSize;
    }
  }
  void drain() override {
    if (before_fence_) before_fence_();
    const MutexLock lock(mutex_);
    for (const auto& [first, line] : flushed_)
      std::memcpy(&durable_[first], line.data(), sizeof line);
    flushed_.clear();
  }
  Result<void> make_durable() override { return {}; }

 private:
  using Line = std::array<uint64_t, kLineSize / kWordSize>;
  static std::vector<uint64_t> words_of(const pmem::Region& region) {
    const auto* first = reinterpret_cast<const uint64_t*>(region.at(0));
    return {first, first + region.size() / kWordSize};
  }

  std::vector<uint64_t> words_;
  pmem::MetaClass class_;
  std::function<void()> before_fence_;
  std::function<bool(uint64_t)> loses_;
  Mutex mutex_;  // leaf
  std::vector<uint64_t> frozen_ SFS_GUARDED_BY(mutex_), frozen_durable_ SFS_GUARDED_BY(mutex_);
  std::vector<uint64_t> durable_ SFS_GUARDED_BY(mutex_);
  std::map<uint64_t, Line> flushed_ SFS_GUARDED_BY(mutex_);  // by first word: as it was then
};

// Calls a function before each write, flush and trim, and fails them once the power is off.
class EventDevice final : public blockdev::ForwardingDevice {
 public:
  EventDevice(blockdev::Device& beneath, const std::atomic<bool>& off, std::function<void()> call)
      : ForwardingDevice(beneath), off_(off), call_(std::move(call)) {}
  void write(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag,
             blockdev::Completion done) override {
    if (is_off()) return done(Error{EIO, "the power is off"});
    beneath_.write(first, bytes, tag, std::move(done));
  }
  Result<void> flush() override {
    if (is_off()) return Error{EIO, "the power is off"};
    return beneath_.flush();
  }
  Result<void> trim(BlockNo first, uint64_t count) override {
    if (is_off()) return Error{EIO, "the power is off"};
    return beneath_.trim(first, count);
  }

 private:
  bool is_off() {
    call_();
    return off_;
  }

  const std::atomic<bool>& off_;
  const std::function<void()> call_;
};

class Rig {
 public:
  struct Options {
    uint64_t blocks = 4096;
    uint64_t most_blocks = 0;  // limit of a growth
    uint16_t pstreams = 4;
    uint64_t meta_bytes = 12 << 20;
    bool checksums = true;
    bool volatile_cache = true;
    bool faulty = true;  // false: no device that serialises everything in between
    pmem::MetaClass meta_class = pmem::MetaClass::kPersistent;
    bool meta_log = false;
    std::string kind = "ram";  // of the device
    bool forgetful_meta = false;
    uint32_t version = meta::kFormatVersion;
    uint64_t intent_log_bytes = 0;
    bool cuts_within = false;  // power_off_after() is used; needs forgetful_meta
    MountOptions mount;
  };
  static Options with_log(pmem::MetaClass meta_class = pmem::MetaClass::kSynced) {
    Options options;
    options.blocks = 8192;
    options.meta_bytes = 2 << 20;
    options.meta_class = meta_class;
    options.meta_log = true;
    return options;
  }
  static Options with_intent_log() {
    Options options = with_log(pmem::MetaClass::kPersistent);
    options.meta_bytes = 4 << 20;
    options.intent_log_bytes = 1 << 20;
    return options;
  }
  static Options writing_at_once() {
    Options options;
    options.mount.write_behind_mib = 0;
    return options;
  }
  explicit Rig(const Options& options) : options_(options) {
    auto ram = std::make_unique<RamDevice>(options.blocks, options.pstreams, options.most_blocks,
                                           options.kind);
    ram_ = ram.get();
    device_ = std::make_unique<blockdev::FaultyDevice>(std::move(ram), options.volatile_cache);
    region_ = pmem::make_memory_region(options.meta_bytes, options.meta_class);
    meta::FormatOptions format;
    format.data_blocks = options.blocks;
    format.checksums = options.checksums;
    format.meta_log = options.meta_log;
    format.version = options.version;
    format.intent_log_bytes = options.intent_log_bytes;
    format.uuid = {7};
    format.data_identity = ram_->info().identity;
    super_ = pair::format_open_pair(*region_, *device_, format, clock_).value();
    open();
  }
  Rig() : Rig(Options{}) {}
  ~Rig() { fs_.reset(); }

  FilesystemImpl& fs() { return *fs_; }
  const meta::Superblock& super() const { return super_; }
  RamDevice& ram() { return *ram_; }
  blockdev::FaultyDevice& device() { return *device_; }
  RigClock& clock() { return clock_; }

  // Switches the power off before the fence of META, or the write, flush or trim of DATA, that
  // follows `events` others. Calls go on, and those that need the device fail. The next cut loses
  // all that came later.
  void power_off_after(uint64_t events) { events_left_ = events; }
  bool power_is_off() const { return off_; }
  // Calls this once, before the next fence, write, flush or trim.
  void at_next_event(std::function<void()> call) { at_next_event_ = std::move(call); }
  // Chooses the unfenced words of META that the next cut loses. Requires: forgetful_meta.
  void lose(std::function<bool(uint64_t offset)> loses) { forgetful_->lose(std::move(loses)); }

  // Everything not flushed to the device may be lost, sector by sector.
  void power_cut(uint64_t seed) {
    device_->power_cut(seed);
    off_ = true;  // the writes of the destructor come too late
    if (forgetful_ != nullptr) forgetful_->freeze();
    if (forgetful_ != nullptr) forgetful_->forget(seed);
    region_ = copy_of(*view_);
    fs_.reset();
    power_on();
    open();
  }
  // META is gone as well, as a reboot takes DRAM; it is rebuilt from the metadata log. `meanwhile`
  // runs while nothing is mounted.
  void power_cut_losing_meta(uint64_t seed, const std::function<void()>& meanwhile = {}) {
    device_->power_cut(seed);
    fs_.reset();
    power_on();
    if (meanwhile) meanwhile();
    rebuild_meta();
    open();
  }
  void kill_losing_meta() {
    fs_.reset();
    rebuild_meta();
    open();
  }
  void unmount_losing_meta() {
    const Result<void> done = fs_->unmount();
    ASSERT_TRUE(done.ok()) << done.error().message();
    fs_.reset();
    rebuild_meta();
    open();
  }
  // The process only: what META and the device were given, they have.
  void kill() {
    region_ = copy_of(*view_);
    fs_.reset();
    open();
  }
  // The same, of what META was at keep().
  void keep() { kept_ = copy_of(*view_); }
  void kill_as_kept() {
    fs_.reset();
    region_ = std::move(kept_);
    open();
  }
  // Kills the process. Until open(), a test may have the pair as fsck does: open_pair(), and then
  // put_back() of its region.
  void keep_off() {
    region_ = copy_of(*view_);
    fs_.reset();
  }
  pair::OpenPair open_pair() {
    pair::OpenPair pair;
    pair.region = std::move(region_);
    blockdev::Device& device = *device_;
    pair.device = std::make_unique<BorrowedDevice>(device);
    pair.super = meta::load_superblock(*pair.region, true).value();
    pair.label = pair::read_label(device).value();
    return pair;
  }
  void put_back(std::unique_ptr<pmem::Region> region) { region_ = std::move(region); }
  void remount_growing(bool meta_growth) {
    options_.mount.meta_growth = meta_growth;
    remount();
  }
  void remount() {
    const Result<void> done = fs_->unmount();
    SFS_ASSERT(done.ok());
    region_ = copy_of(*view_);
    fs_.reset();
    open();
  }
  void open() {
    pair::OpenPair pair;
    if (options_.forgetful_meta) {
      auto forgetful = std::make_unique<ForgetfulRegion>(*region_);
      forgetful_ = forgetful.get();
      if (options_.cuts_within) forgetful->before_fence([this] { on_event(); });
      region_ = std::move(forgetful);
    }
    view_ = region_.get();
    pair.region = std::move(region_);
    blockdev::Device* device = ram_;
    if (options_.faulty) device = device_.get();
    pair.device = std::make_unique<BorrowedDevice>(*device);
    if (options_.cuts_within)
      pair.device = std::make_unique<EventDevice>(*device, off_, [this] { on_event(); });
    pair.super = meta::load_superblock(*pair.region, true).value();
    ++pair.super.attachments;  // a mount does: chunks of the log are numbered by it
    SFS_ASSERT(meta::store_superblock(*pair.region, pair.super).ok());
    ++pair.super.generation;
    pair.label = pair::read_label(*device).value();
    SFS_ASSERT(pair::renew_label(pair).ok());
    auto opened = FilesystemImpl::open(std::move(pair), options_.mount, clock_, false);
    if (!opened.ok()) {
      std::fprintf(stderr, "open: %s\n", opened.error().message().c_str());
      std::abort();
    }
    fs_ = std::move(opened).value();
  }

  InodeId create(const std::string& name) {
    return fs_->create(fs_->root(), name, 0100644, 0, {}, {}).value().id;
  }
  InodeId lookup(const std::string& name) { return fs_->lookup(fs_->root(), name).value().id; }
  Result<void> write(InodeId id, uint64_t offset, const std::vector<std::byte>& bytes) {
    return fs_->write(id, offset, bytes);
  }
  std::vector<std::byte> read(InodeId id, uint64_t offset, size_t length) {
    std::vector<std::byte> out(length);
    const Result<size_t> got = fs_->read(id, offset, out);
    if (!got.ok()) {
      ADD_FAILURE() << "read: " << got.error().message();
      return {};
    }
    out.resize(*got);
    return out;
  }
  static std::vector<std::byte> filled(size_t length, int value) {
    return std::vector<std::byte>(length, static_cast<std::byte>(value));
  }

  meta::CheckReport check() const {
    const auto copy = copy_of(*view_);
    return meta::check(*copy, meta::load_superblock(*copy, true).value(), {}).value();
  }

 private:
  void on_event() {
    if (const auto once = std::exchange(at_next_event_, nullptr)) once();
    if (events_left_ == 0 || events_left_-- > 1 || off_.exchange(true)) return;
    forgetful_->freeze();
  }
  void power_on() {
    device_->power_on();
    events_left_ = 0;
    off_ = false;
  }
  static std::unique_ptr<pmem::Region> copy_of(const pmem::Region& from) {
    auto to = pmem::make_memory_region(from.size(), from.meta_class());
    std::vector<uint64_t> words(from.size() / kWordSize);
    std::memcpy(words.data(), from.at(0), from.size());
    to->store(0, words);
    return to;
  }

  void rebuild_meta() {
    const meta::DataLabel label = pair::read_label(*device_).value();
    region_ = pmem::make_memory_region(label.geometry.meta_size, options_.meta_class);
    pair::LogBlocks log(*device_);
    const auto restored = meta::restore_from_log(*region_, label, log);
    if (!restored.ok()) {
      std::fprintf(stderr, "restore: %s\n", restored.error().message().c_str());
      std::abort();
    }
  }

  Options options_;
  RigClock clock_;
  std::atomic<uint64_t> events_left_{0};  // 0: no cut is planned
  std::atomic<bool> off_{false};
  std::function<void()> at_next_event_;
  RamDevice* ram_ = nullptr;
  std::unique_ptr<blockdev::FaultyDevice> device_;
  std::unique_ptr<pmem::Region> region_, kept_;
  const pmem::Region* view_ = nullptr;    // the mounted filesystem's
  ForgetfulRegion* forgetful_ = nullptr;  // the same, if it is one
  meta::Superblock super_{};
  std::unique_ptr<FilesystemImpl> fs_;
};

}  // namespace streamfs::data
