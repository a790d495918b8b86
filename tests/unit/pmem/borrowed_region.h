// Another region's words, with a test looking on: what it stores is there, and promises nothing.
// Thread safety: one test thread. The other region outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/result.h"
#include "pmem/region.h"

namespace streamfs::pmem {

class BorrowedRegion : public Region {
 public:
  explicit BorrowedRegion(const Region& words) {
    attach(const_cast<std::byte*>(words.at(0)), words.size());
  }
  // Before each load, with its offset.
  void on_each_load(std::function<void(uint64_t)> look) {
    look_ = std::move(look);
    watch_loads();
  }
  MetaClass meta_class() const override { return MetaClass::kPersistent; }

 protected:
  void on_load(uint64_t offset) const override { look_(offset); }
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t) override {}
  void drain() override {}
  Result<void> make_durable() override { return {}; }

 private:
  std::function<void(uint64_t)> look_;
};

}  // namespace streamfs::pmem
