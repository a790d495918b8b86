// The barrier of a META with an intent log that serves (meta/intent_log.h): META is persistent, or
// trusted although it is not.
//
// Data that an fsync put into the intent log goes home in *rounds*. A round is a flush of an epoch:
//
//   cut()          notes the last record S and the last entry L
//   write_out()    all cached data → DATA                               (write_cache.h)
//   before_flush() metadata log: the records of the last round, as one group
//   flush          of the device, which covers both
//   after_flush()  entries up to L expire in META; the data of records up to S is home
//
// The metadata log on DATA has a record once its data is home. So if META is lost, the files are as
// of some round: every record up to it and none after it. No program sees there what it wrote after
// an fsync without what that fsync covered, because overwrites take new blocks while a record that
// an fsync was promised is not in the log on DATA.
//
// Thread safety: any thread. After a crash: see intent_log.h, and docs/ORDERING.md for the loss of
// META.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/durability.h"
#include "fuse-fs/data/epoch_log_blocks.h"
#include "fuse-fs/data/epoch_stream.h"
#include "fuse-fs/data/recovered_blocks.h"
#include "fuse-fs/data/write_cache.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/metadata_log.h"
#include "pmem/region.h"

namespace streamfs::data {

class IntentBarrier final : public DurabilityBarrier {
 public:
  // Entries are home after this time, or no further fsync uses the log.
  static constexpr uint64_t kAgeMaxMs = 5000;
  struct Parts {
    pmem::Region& region;
    meta::Engine& engine;
    EpochStream& device;
    WriteCache& write_cache;
    RecoveredBlocks& recovered;
    Clock& clock;
    bool trims;  // of the metadata log's blocks
  };
  // `label`: of DATA, if it has a metadata log; else null. Errors: those of MetadataLog::attach().
  static Result<std::unique_ptr<IntentBarrier>> make(const Parts& parts,
                                                     std::unique_ptr<meta::IntentLog> log,
                                                     const meta::DataLabel* label);
  // Sets the function that runs one round. Call it before all others.
  void on_round(std::function<Result<void>()> round) { round_ = std::move(round); }

  meta::IntentLog& log() { return *intent_; }
  // Returns whether the oldest entry is younger than kAgeMaxMs.
  bool takes_entries() const;
  void took_entries();  // an fsync is in the log now

  Result<void> make_durable(TxId through) override;
  Result<void> acknowledge(TxId through) override;
  Result<void> follow() override { return parts_.region.sync(); }
  bool waits() const override { return true; }
  bool damaged() const override { return parts_.region.lost() > 0; }
  uint32_t delay_ms() const override { return kAgeMaxMs - 1000; }
  // Until the logs begin, what the last mount promised may be in META alone.
  bool pending() const override {
    return !begun_.load(std::memory_order_acquire) || reusable() < promised();
  }
  bool crowded() const override;

  Result<void> begin_log() override;
  bool log_begun() const override { return begun_.load(std::memory_order_acquire) && !damaged(); }
  void cut() override;
  Result<void> before_flush() override;
  void after_flush(bool all_written) override;

  bool forbids(BlockNo, ConstBytes) const override { return reusable() < promised(); }
  Result<void> before_overwrite(BlockNo first, ConstBytes blocks) override;
  Result<void> settle(TxId through) override { return make_durable(through); }
  std::optional<TxId> settled() const override {
    return log_begun() ? std::optional(reusable()) : std::nullopt;
  }
  bool moves_overwrites() const override { return true; }

  uint64_t log_bytes() const override { return metadata_ ? metadata_->bytes_written() : 0; }
  Result<void> renew() override;
  void grow(const meta::DataLabel& label) override;
  uint64_t close() override { return metadata_ ? metadata_->end() : 0; }

 private:
  struct Round {
    TxId record;         // every record up to it was committed before the round
    uint64_t entry = 0;  // the newest entry of the log then
    uint64_t begun_ms = 0;
  };
  IntentBarrier(const Parts& parts, std::unique_ptr<meta::IntentLog> log);
  TxId promised() const { return TxId{promised_.load(std::memory_order_acquire)}; }
  TxId home() const { return TxId{home_.load(std::memory_order_acquire)}; }
  // Returns the last record whose freed blocks may be reused: it is home and, if DATA has a
  // metadata log, durable there.
  TxId reusable() const { return metadata_ ? metadata_->durable() : home(); }
  Round begin_round(bool commits_stopped);
  void is_home(const Round& round);
  Result<TxId> bring_home(bool commits_stopped);
  Result<void> run_rounds(const std::function<bool()>& done);

  Parts parts_;
  std::unique_ptr<meta::IntentLog> intent_;
  EpochLogBlocks blocks_;
  std::unique_ptr<meta::MetadataLog> metadata_;  // null: DATA has none
  std::function<Result<void>()> round_;          // of on_round()
  Mutex beginning_;  // before the metadata log's locks; held across device I/O
  std::atomic<bool> begun_{false};
  std::atomic<uint64_t> promised_{0}, home_{0};
  std::atomic<uint64_t> oldest_ms_{0};  // when the oldest entry was stored; 0: there is none
  Round current_;                       // used by the thread between cut() and after_flush()
  meta::MetadataLog::Shipped shipped_;  // the same
};

}  // namespace streamfs::data
