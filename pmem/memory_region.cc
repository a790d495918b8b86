#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/address_range.h"
#include "pmem/region.h"

namespace streamfs::pmem {
namespace {

class MemoryRegion final : public Region {
 public:
  MemoryRegion(AddressRange addresses, MetaClass meta_class)
      : addresses_(std::move(addresses)), class_(meta_class) {
    attach(addresses_.base(), 0);
  }
  MetaClass meta_class() const override { return class_; }
  bool extensible() const override { return true; }

 protected:
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t) override {}
  void drain() override {}
  Result<void> make_durable() override { return {}; }
  Result<void> extend(uint64_t size) override {
    if (size > addresses_.bytes()) {
      return Error{ENOSPC, "no addresses for more than " + std::to_string(addresses_.bytes())};
    }
    const bool opened = mprotect(addresses_.base(), size, PROT_READ | PROT_WRITE) == 0;
    return opened ? Result<void>() : Error{errno, "memory for META"};
  }

 private:
  AddressRange addresses_;
  MetaClass class_;
};

}  // namespace

std::unique_ptr<Region> make_memory_region(uint64_t size, MetaClass meta_class) {
  Result<AddressRange> addresses = AddressRange::reserve(size);
  SFS_ASSERT(addresses.ok());
  auto region = std::make_unique<MemoryRegion>(std::move(addresses).value(), meta_class);
  SFS_ASSERT(region->grow(round_down(size, kWordSize)).ok());
  return region;
}

}  // namespace streamfs::pmem
