#include "fuse-fs/data/durability.h"

#include <cerrno>
#include <memory>

#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

class RegionBarrier final : public DurabilityBarrier {
 public:
  explicit RegionBarrier(pmem::Region& region) : region_(region) {}
  Result<void> make_durable(TxId) override { return region_.sync(); }
  Result<void> settle(TxId through) override { return make_durable(through); }
  bool waits() const override { return region_.meta_class() == pmem::MetaClass::kSynced; }
  bool damaged() const override { return region_.lost() > 0; }

 private:
  pmem::Region& region_;
};

}  // namespace

std::unique_ptr<DurabilityBarrier> make_region_barrier(pmem::Region& region) {
  return std::make_unique<RegionBarrier>(region);
}

Result<void> durable_or_read_only(Result<void> answer, Health& health) {
  if (!answer.ok() && answer.error().code == kNotHome) return Error{EIO, answer.error().context};
  if (!answer.ok()) health.degrade("metadata not durable: " + answer.error().message());
  return answer;
}

Result<void> make_durable(Durability& durability, TxId through, Health& health) {
  return durable_or_read_only(durability.make_durable(through), health);
}

}  // namespace streamfs::data
