#include "fuse-fs/data/durability.h"

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

// The log is a circle rewritten in order: it dies faster than anything else and shares no label.
constexpr VStreamId kLogVStream{65535};

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
  if (!answer.ok()) health.degrade("metadata not durable: " + answer.error().message());
  return answer;
}

Result<void> make_durable(Durability& durability, TxId through, Health& health) {
  return durable_or_read_only(durability.make_durable(through), health);
}

Result<void> LogBlocks::write(BlockNo first, ConstBytes bytes) {
  const PStreamId to = stream(bytes.size() / kBlockSize);
  blockdev::IoBatch batch(device_);
  batch.write(first, bytes, {device_.placement(to), kLogVStream});
  return batch.wait();
}

PStreamId LogBlocks::stream(uint64_t /*blocks*/) {
  return PStreamId{static_cast<uint16_t>(device_.info().pstream_count - 1)};
}

Result<void> LogBlocks::read(BlockNo first, Bytes bytes) {
  blockdev::IoBatch batch(device_);
  batch.read(first, bytes);
  return batch.wait();
}

Result<void> LogBlocks::flush() {
  return device_.flush();
}

}  // namespace streamfs::data
