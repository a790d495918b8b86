#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::pmem {
namespace {

class MemoryRegion final : public Region {
 public:
  MemoryRegion(uint64_t size, MetaClass meta_class) : words_(size / kWordSize), class_(meta_class) {
    attach(reinterpret_cast<std::byte*>(words_.data()), words_.size() * kWordSize);
  }
  MetaClass meta_class() const override { return class_; }

 protected:
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t) override {}
  void drain() override {}
  Result<void> make_durable() override { return {}; }

 private:
  std::vector<uint64_t> words_;
  MetaClass class_;
};

}  // namespace

std::unique_ptr<Region> make_memory_region(uint64_t size, MetaClass meta_class) {
  return std::make_unique<MemoryRegion>(size, meta_class);
}

}  // namespace streamfs::pmem
