// Write amplification (NAND pages programmed for each page written by the host) in closed form, or
// as the root of an equation. A correct simulator of a page-mapped FTL converges to it.
//
// α is the closed blocks' pages ÷ user pages, or 1 + spare ÷ user; free and open blocks are not
// counted. Every user page is live and overwritten at random. The device is large; `pages` is the
// number of pages in a block.
// Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace streamfs::lab::model {

// FIFO, uniform, large blocks: A = α / (α + W₀(−α e^{−α})) (Desnoyers, SYSTOR'12; the same as
// Menon, HPDC'95), solved as A = 1 / (1 − e^{−α/A}).
double fifo_waf(double alpha);

// Greedy, uniform: (n − v) / (ψ(n + 1) − ψ(v + 1)) = n / α for v, n pages a block, v of them valid
// in a victim; A = n / (n − v) (Desnoyers, SYSTOR'12).
double greedy_waf(uint32_t pages, double alpha);

// d-choices, uniform: the fixed point of the mean field of Van Houdt, SIGMETRICS'13. See waf.cc.
double d_choices_waf(uint32_t pages, double alpha, uint32_t choices);

// A share r of the writes goes to a share f of the pages, the rest to the rest.
struct TwoTemperatures {
  double writes;  // r
  double pages;   // f
};

// Both temperatures in the same blocks, FIFO, large blocks: with n = α / A,
// n r / (1 − e^{−n r/f}) + n (1 − r) / (1 − e^{−n (1−r)/(1−f)}) = α (Desnoyers, TOS 2014).
double mixed_fifo_waf(double alpha, TwoTemperatures heat);

// Each temperature in blocks of its own, FIFO, large blocks, the spare split to the least sum.
double split_fifo_waf(double alpha, TwoTemperatures heat);
// Does the same with greedy for each temperature.
double split_greedy_waf(uint32_t pages, double alpha, TwoTemperatures heat);

}  // namespace streamfs::lab::model
