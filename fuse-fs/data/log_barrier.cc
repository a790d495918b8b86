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
      : region_(region), journal_(engine.journal()), blocks_(device) {}

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
  Result<void> make_durable() override {
    if (damaged()) SFS_TRY(region_.sync());
    const Result<void> shipped_now = ships_.run([this]() -> Result<void> {
      if (log_->durable() >= journal_.last()) return {};
      SFS_ASSIGN(const TxId shipped, log_->ship());
      SFS_TRY(blocks_.flush());
      log_->made_durable(shipped);
      return {};
    });
    SFS_TRY(shipped_now);
    return region_.copies() > 1 ? region_.sync() : Result<void>();
  }
  Result<void> follow() override { return region_.sync(); }
  bool waits() const override { return true; }
  bool damaged() const override { return region_.lost() > 0; }
  uint64_t log_bytes() const override { return log_->bytes_written(); }
  void grow(const meta::DataLabel& label) override { log_->grow(label); }
  Result<void> renew() override { return log_->snapshot(); }
  Result<void> close() override { return log_->snapshot(); }

 private:
  pmem::Region& region_;
  meta::Journal& journal_;
  LogBlocks blocks_;
  std::unique_ptr<meta::MetadataLog> log_;
  GroupRun ships_;
  TxId shipped_;  // of the thread between before_flush and after_flush
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
