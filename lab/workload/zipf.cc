// zipf: the page of rank k with a probability in proportion to k^−θ, by rejection-inversion
// (Hörmann and Derflinger, TOMACS 1996): exact, constant time, no tables. Ranks are spread over the
// addresses, so that neighbours have nothing in common. Tag: the decade of the rank, at most 7.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>

#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

class Zipf final : public Generator {
 public:
  explicit Zipf(const GeneratorOptions& options)
      : Generator(options),
        theta_(options.theta),
        first_(integral(1.5) - 1),
        last_(integral(pages_ + 0.5)),
        sure_(2 - inverse(integral(2.5) - std::pow(2.0, -theta_))),
        stride_(pages_ / 2 + pages_ / 8 + 1) {
    while (std::gcd(stride_, pages_) != 1) ++stride_;
  }
  std::optional<StreamFacts> facts() const override { return all_pages(); }

 private:
  void request() override {
    const uint32_t rank = draw();
    uint16_t decade = 0;
    for (uint32_t limit = 10; rank >= limit && decade < 7; limit *= 10) ++decade;
    write_page(static_cast<ssd::Lpn>(uint64_t{rank} * stride_ % pages_), decade);
  }

  uint32_t draw() {  // of [0, pages)
    for (;;) {
      const double u = last_ + random_.unit() * (first_ - last_);
      const double x = inverse(u);
      const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(pages_));
      if (k - x <= sure_ || u >= integral(k + 0.5) - std::pow(k, -theta_))
        return static_cast<uint32_t>(k) - 1;
    }
  }

  // ∫ x^−θ, and its inverse; the limits are logarithm and exponential where θ = 1.
  double integral(double x) const {
    const double log_x = std::log(x);
    return expm1_over((1 - theta_) * log_x) * log_x;
  }
  double inverse(double x) const {
    const double t = std::max(x * (1 - theta_), -1.0);
    return std::exp(log1p_over(t) * x);
  }
  static double expm1_over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }
  static double log1p_over(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }

  const double theta_, first_, last_, sure_;
  uint32_t stride_;
};

}  // namespace

std::unique_ptr<OpSource> make_zipf(const GeneratorOptions& options) {
  return std::make_unique<Zipf>(options);
}

}  // namespace streamfs::lab
