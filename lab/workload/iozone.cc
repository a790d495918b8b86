// iozone-sequential, iozone-random: one file as large as there are pages, written from front to
// back in records of 64 KiB, then again and again: in order, or each record of 4 KiB once a pass in
// an order drawn for the pass (Lee's IOzone runs; `iozone -i 0` and `-i 2`). Memory: random, 4
// bytes a page.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

constexpr uint32_t kRecordPages = 16;

class Iozone final : public Generator {
 public:
  Iozone(const GeneratorOptions& options, bool random) : Generator(options), random_order_(random) {
    restart();
  }
  std::optional<StreamFacts> facts() const override { return all_pages(); }

 private:
  void restart() override {
    next_ = 0;
    order_.clear();
  }

  void request() override {
    if (order_.empty()) {
      const uint32_t pages = std::min(kRecordPages, pages_ - next_);
      write_run(next_, pages, 0, 0);
      next_ += pages;
    } else {
      write_page(order_[next_++], 0);
    }
    if (next_ == pages_) begin_pass();
  }

  void begin_pass() {
    next_ = 0;
    if (!random_order_) return;
    order_.resize(pages_);
    std::iota(order_.begin(), order_.end(), ssd::Lpn{0});
    for (uint32_t left = pages_; left > 1; --left)
      std::swap(order_[left - 1], order_[random_.below(left)]);
  }

  const bool random_order_;
  ssd::Lpn next_ = 0;
  std::vector<ssd::Lpn> order_;  // of this pass; empty: front to back
};

}  // namespace

std::unique_ptr<OpSource> make_iozone_sequential(const GeneratorOptions& options) {
  return std::make_unique<Iozone>(options, false);
}

std::unique_ptr<OpSource> make_iozone_random(const GeneratorOptions& options) {
  return std::make_unique<Iozone>(options, true);
}

}  // namespace streamfs::lab
