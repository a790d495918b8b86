#include "lab/formulas/waf.h"

#include <cmath>
#include <cstdint>

namespace streamfs::lab::model {
namespace {

constexpr int kHalvings = 100;

// Returns where `rising`, a function that grows from below zero, crosses zero.
template <typename Function>
double root(double low, double high, Function rising) {
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (rising(middle) < 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

double digamma(double x) {
  double shift = 0;
  while (x < 10) {
    shift -= 1 / x;
    x += 1;
  }
  return shift + std::log(x) - 1 / (2 * x) - 1 / (12 * x * x) + 1 / (120 * x * x * x * x);
}

// The mean field of d choices. Q_i is the share of closed blocks with at least i valid pages, b is
// the number of pages in a block, and m is the pages that a collection frees ÷ user pages per
// closed block. Between two collections as many blocks fall below i valid pages (left) as join
// those with at least i (right). A full block joins; the victim leaves if it held i or more, with
// the probability Q_i^d:
//   i m (Q_i − Q_{i+1}) = 1 − Q_i^d,  Q_{b+1} = 0.
// Returns ΣQ_i, the valid pages of the average block, and ΣQ_i^d, those of the average victim.
struct MeanField {
  double valid, victim_valid;
};

MeanField mean_field(uint32_t pages, double m, uint32_t choices) {
  MeanField sums{0, 0};
  double above = 0;
  for (uint32_t i = pages; i > 0; --i) {
    const double rate = i * m;
    const double here =
        root(0, 1, [&](double q) { return rate * (q - above) - 1 + std::pow(q, choices); });
    sums.valid += here;
    sums.victim_valid += std::pow(here, choices);
    above = here;
  }
  return sums;
}

// Returns the minimum of a function with one valley.
template <typename Function>
double least(double low, double high, Function function) {
  for (int i = 0; i < kHalvings; ++i) {
    const double left = low + (high - low) / 3, right = high - (high - low) / 3;
    (function(left) < function(right) ? high : low) =
        function(left) < function(right) ? right : left;
  }
  return function((low + high) / 2);
}

template <typename Waf>
double split(double alpha, TwoTemperatures heat, Waf waf) {
  const double spare = alpha - 1;
  return least(1e-6, 1 - 1e-6, [&](double share) {
    const double hot = waf(1 + spare * share / heat.pages);
    const double cold = waf(1 + spare * (1 - share) / (1 - heat.pages));
    return heat.writes * hot + (1 - heat.writes) * cold;
  });
}

}  // namespace

double fifo_waf(double alpha) {
  return alpha / root(1e-9, alpha, [&](double n) { return n / -std::expm1(-n) - alpha; });
}

double greedy_waf(uint32_t pages, double alpha) {
  const double n = pages;
  const double v = root(0, n - 1e-9, [&](double valid) {
    return (n - valid) / (digamma(n + 1) - digamma(valid + 1)) - n / alpha;
  });
  return n / (n - v);
}

double d_choices_waf(uint32_t pages, double alpha, uint32_t choices) {
  // The more a collection frees, the sooner blocks empty: ΣQ falls as m grows.
  const double m = root(0, alpha, [&](double freed) {
    return pages / alpha - mean_field(pages, freed, choices).valid;
  });
  return pages / (pages - mean_field(pages, m, choices).victim_valid);
}

double mixed_fifo_waf(double alpha, TwoTemperatures heat) {
  const auto space = [](double n, double writes, double pages) {
    return n * writes / -std::expm1(-n * writes / pages);
  };
  return alpha / root(1e-9, alpha, [&](double n) {
           return space(n, heat.writes, heat.pages) + space(n, 1 - heat.writes, 1 - heat.pages) -
                  alpha;
         });
}

double split_fifo_waf(double alpha, TwoTemperatures heat) {
  return split(alpha, heat, fifo_waf);
}

double split_greedy_waf(uint32_t pages, double alpha, TwoTemperatures heat) {
  return split(alpha, heat, [&](double own) { return greedy_waf(pages, own); });
}

}  // namespace streamfs::lab::model
