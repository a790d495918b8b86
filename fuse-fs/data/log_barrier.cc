// The barrier of a filesystem with a metadata log.
#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "fuse-fs/data/durability.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

class LogBarrier final : public DurabilityBarrier {
 public:
  LogBarrier(pmem::Region& region, meta::Engine& engine, blockdev::Device& device)
      : region_(region),
        journal_(engine.journal()),
        blocks_(device),
        takes_conditions_(region.copies() == 1 && engine.geometry().checksums() &&
                          region.meta_class() != pmem::MetaClass::kPersistent) {}

  Result<void> start(const meta::Geometry& geometry, const meta::DataLabel& label) {
    SFS_ASSIGN(log_, meta::MetadataLog::start(region_, geometry, journal_, blocks_, label));
    return {};
  }
  Result<void> before_flush() override {
    if (damaged()) SFS_TRY(region_.sync());  // a snapshot is made of a whole copy
    SFS_ASSIGN(shipped_, log_->ship());
    return {};
  }
  void after_flush() override { log_->made_durable(shipped_); }

  // The log is what META is rebuilt from, lost or cut short; its own sync is waited for only where
  // either of two copies shall do alone.
  Result<void> make_durable(TxId through) override {
    if (damaged()) SFS_TRY(region_.sync());
    const auto shipped =
        ships_.run_until([&] { return log_->durable() >= through; },
                         [this] { return flush_what([this] { return log_->ship(); }); });
    SFS_TRY(shipped);
    return region_.copies() > 1 ? region_.sync() : Result<void>();
  }
  Result<void> settle(TxId through) override {
    SFS_TRY(make_durable(through));
    return settle_up_to(through);
  }
  // After a power cut META has to come from the log for sure: META itself names data that was not
  // flushed.
  bool takes_conditions() const override { return takes_conditions_; }
  Result<void> settle(BlockNo first, uint64_t count) override {
    if (!log_->is_conditional(first, count)) return {};
    return settle_up_to(journal_.last());
  }
  Result<void> follow() override { return region_.sync(); }
  bool waits() const override { return true; }
  bool damaged() const override { return region_.lost() > 0; }
  uint64_t log_bytes() const override { return log_->bytes_written(); }
  void grow(const meta::DataLabel& label) override { log_->grow(label); }
  Result<void> renew() override { return log_->snapshot(); }
  Result<void> close() override { return log_->snapshot(); }

 private:
  // The flush that makes a record durable, and one more for the chunk that says so.
  Result<void> settle_up_to(TxId through) {
    return settles_.run_until(
        [&] { return !log_->is_conditional(through); },
        [this] { return flush_what([this] { return log_->ship_to_settle(); }); });
  }
  template <typename Ship>
  Result<void> flush_what(const Ship& ship) {
    SFS_ASSIGN(const meta::MetadataLog::Shipped shipped, ship());
    SFS_TRY(blocks_.flush());
    log_->made_durable(shipped);
    return {};
  }

  pmem::Region& region_;
  meta::Journal& journal_;
  LogBlocks blocks_;
  std::unique_ptr<meta::MetadataLog> log_;
  const bool takes_conditions_;
  GroupRun ships_, settles_;
  meta::MetadataLog::Shipped shipped_;  // of the thread between before_flush and after_flush
};

}  // namespace

Result<std::unique_ptr<DurabilityBarrier>> make_log_barrier(pmem::Region& region,
                                                            meta::Engine& engine,
                                                            blockdev::Device& device,
                                                            const meta::DataLabel& label) {
  auto barrier = std::make_unique<LogBarrier>(region, engine, device);
  SFS_TRY(barrier->start(engine.geometry(), label));
  return std::unique_ptr<DurabilityBarrier>(std::move(barrier));
}

}  // namespace streamfs::data
