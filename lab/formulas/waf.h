// Write amplification in closed form, or as the root of one equation: what a correct simulator of
// a page-mapped FTL converges to. NAND pages programmed per page written by the host.
//
// α: closed blocks' pages ÷ user pages, 1 + spare ÷ user: free and open blocks come on top of it.
// Every user page is alive and overwritten at random. Large devices; `pages` is those of a block.
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

// Both in the same blocks, FIFO, large blocks: with n = α / A,
// n r / (1 − e^{−n r/f}) + n (1 − r) / (1 − e^{−n (1−r)/(1−f)}) = α (Desnoyers, TOS 2014).
double mixed_fifo_waf(double alpha, TwoTemperatures heat);

// Each in blocks of its own, FIFO, large blocks, the spare split to the least sum.
double split_fifo_waf(double alpha, TwoTemperatures heat);
// The same with greedy inside.
double split_greedy_waf(uint32_t pages, double alpha, TwoTemperatures heat);

}  // namespace streamfs::lab::model
