// shifting: like hotcold, but the hot pages are a window that moves on by its own length every
// period and wraps around, so that knowledge of earlier periods is wrong. Tags are as in hotcold.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

class Shifting final : public Generator {
 public:
  explicit Shifting(const GeneratorOptions& options)
      : Generator(options),
        hot_writes_(options.hot_writes),
        hot_pages_(std::clamp(static_cast<uint32_t>(options.hot_space * pages_), 1u, pages_ - 1)),
        period_(options.period != 0 ? options.period : pages_) {}
  std::optional<StreamFacts> facts() const override { return all_pages(); }

 private:
  void request() override {
    const auto window = static_cast<uint32_t>(written_ / period_ * hot_pages_ % pages_);
    const bool hot = random_.unit() < hot_writes_;
    const uint32_t place =
        hot ? random_.below(hot_pages_) : hot_pages_ + random_.below(pages_ - hot_pages_);
    write_page(static_cast<ssd::Lpn>((uint64_t{window} + place) % pages_), hot ? 0 : 1);
  }

  const double hot_writes_;
  const uint32_t hot_pages_;
  const uint64_t period_;
};

}  // namespace

std::unique_ptr<OpSource> make_shifting(const GeneratorOptions& options) {
  return std::make_unique<Shifting>(options);
}

}  // namespace streamfs::lab
