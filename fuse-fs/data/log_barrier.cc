// The barrier of a filesystem with a metadata log.
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/durability.h"
#include "fuse-fs/data/epoch_log_blocks.h"
#include "fuse-fs/data/epoch_stream.h"
#include "fuse-fs/data/group_run.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/pair/attachments.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

class LogBarrier final : public DurabilityBarrier {
 public:
  LogBarrier(pmem::Region& region, meta::Engine& engine, EpochStream& device, bool trims)
      : region_(region),
        engine_(engine),
        blocks_(device, trims),
        rebuilt_(region.copies() == 1 && pair::boot_of_machine() != 0 &&
                 region.meta_class() != pmem::MetaClass::kPersistent) {}

  Result<void> start(const meta::Geometry& geometry, const meta::DataLabel& label) {
    const uint64_t end = geometry.super().log_end;  // as the mount found it
    SFS_ASSIGN(
        log_, meta::MetadataLog::attach(region_, geometry, engine_.journal(), blocks_, label, end));
    return {};
  }
  Result<void> begin_log() override {
    if (damaged()) SFS_TRY(region_.sync());  // a snapshot is made of a whole copy
    return log_->begin();
  }
  bool log_begun() const override { return log_->begun() && !damaged(); }
  Result<void> before_flush() override {
    if (damaged()) SFS_TRY(region_.sync());  // a snapshot is made of a whole copy
    SFS_ASSIGN(shipped_, log_->ship());
    return {};
  }
  void after_flush(bool) override { log_->made_durable(shipped_); }
  bool flush_helps(TxId through) const override { return log_->durable() < through; }

  // If META is rebuilt from the log after every power cut, the log alone makes records durable. If
  // that is not certain, or if each of two copies must be enough alone, META is synced as well.
  Result<void> make_durable(TxId through) override {
    if (damaged()) SFS_TRY(region_.sync());
    const auto shipped =
        ships_.run_until([&] { return log_->durable() >= through; },
                         [this] { return flush_what([this] { return log_->ship(); }); });
    SFS_TRY(shipped);
    return rebuilt_ ? Result<void>() : region_.sync();
  }
  Result<void> settle(TxId through) override {
    SFS_TRY(make_durable(through));
    return settle_up_to(through);
  }
  // With conditional records META itself names data that is not flushed, so they are taken only if
  // META is not used after a power cut.
  bool takes_conditions() const override { return rebuilt_ && engine_.geometry().checksums(); }
  void flush_failed() override {
    if (!log_->conditions().any_up_to(engine_.journal().last()) || distrusted_.exchange(true))
      return;
    Result<void> done = engine_.distrust();
    if (done.ok()) done = region_.sync();
    if (!done.ok()) spdlog::error("META names data that may be lost: {}", done.error().message());
  }
  bool forbids(BlockNo first, ConstBytes blocks) const override {
    return log_->conditions().forbids(first, blocks);
  }
  Result<void> before_overwrite(BlockNo first, ConstBytes blocks) override {
    if (!forbids(first, blocks)) return {};
    return settle_up_to(engine_.journal().last());
  }
  Result<void> follow() override { return region_.sync(); }
  bool waits() const override { return true; }
  bool damaged() const override { return region_.lost() > 0; }
  uint64_t log_bytes() const override { return log_->bytes_written(); }
  void grow(const meta::DataLabel& label) override { log_->grow(label); }
  Result<void> renew() override { return log_->renew(); }
  uint64_t close() override { return log_->end(); }

 private:
  // Settling takes the flush that makes a record durable, and another for the chunk that says so.
  Result<void> settle_up_to(TxId through) {
    return settles_.run_until(
        [&] { return !log_->conditions().any_up_to(through); },
        [this] { return flush_what([this] { return log_->ship_to_settle(); }); });
  }
  template <typename Ship>
  Result<void> flush_what(const Ship& ship) {
    const Result<meta::MetadataLog::Shipped> shipped = ship();  // may flush, for a snapshot
    const Result<void> flushed = shipped.ok() ? blocks_.flush() : shipped.error();
    if (!flushed.ok()) flush_failed();
    SFS_TRY(flushed);
    log_->made_durable(*shipped);
    return {};
  }

  pmem::Region& region_;
  meta::Engine& engine_;
  EpochLogBlocks blocks_;
  std::unique_ptr<meta::MetadataLog> log_;
  const bool rebuilt_;  // from the log after every power cut
  std::atomic<bool> distrusted_{false};
  GroupRun ships_, settles_;
  meta::MetadataLog::Shipped shipped_;  // used by the thread between before_flush and after_flush
};

}  // namespace

Result<std::unique_ptr<DurabilityBarrier>> make_log_barrier(pmem::Region& region,
                                                            meta::Engine& engine,
                                                            EpochStream& device,
                                                            const meta::DataLabel& label,
                                                            bool trims) {
  auto barrier = std::make_unique<LogBarrier>(region, engine, device, trims);
  SFS_TRY(barrier->start(engine.geometry(), label));
  return std::unique_ptr<DurabilityBarrier>(std::move(barrier));
}

}  // namespace streamfs::data
