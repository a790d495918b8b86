// Write amplification (NAND pages programmed for each page written by the host) in closed form, or
// as the root of an equation. A correct simulator of a page-mapped FTL converges to it.
//
// α > 1 is the pages of closed blocks ÷ user pages. If no block is free or open, it is 1 + spare
// pages ÷ user pages. Every user page is live and overwritten at random. The device is large;
// `pages` is the number of pages in a block. W₀ is Lambert's function, ψ is the digamma function.
// Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace streamfs::lab::model {

// FIFO, uniform, large blocks: A = α / (α + W₀(−α e^{−α})) (Desnoyers, SYSTOR'12; the same as
// Menon, HPDC'95), solved as A = 1 / (1 − e^{−α/A}).
double fifo_waf(double alpha);

// Greedy, uniform: a block has n pages, and a victim has v valid ones, the root of
// (n − v) / (ψ(n + 1) − ψ(v + 1)) = n / α. A = n / (n − v) (Desnoyers, SYSTOR'12).
double greedy_waf(uint32_t pages, double alpha);

// d-choices, uniform: the fixed point of the mean field of Van Houdt, SIGMETRICS'13. See waf.cc.
double d_choices_waf(uint32_t pages, double alpha, uint32_t choices);

// A share r of the writes goes to a share f of the pages, the rest to the rest. Both lie between 0
// and 1, exclusive.
struct TwoTemperatures {
  double writes;  // r
  double pages;   // f
};

// Both temperatures in the same blocks, FIFO, large blocks: with n = α / A,
// n r / (1 − e^{−n r/f}) + n (1 − r) / (1 − e^{−n (1−r)/(1−f)}) = α (Desnoyers, TOS 2014).
double mixed_fifo_waf(double alpha, TwoTemperatures heat);

// Each temperature in blocks of its own, FIFO, large blocks. The spare is split so that the WAF of
// both together is the least.
double split_fifo_waf(double alpha, TwoTemperatures heat);
// Does the same with greedy for each temperature.
double split_greedy_waf(uint32_t pages, double alpha, TwoTemperatures heat);

}  // namespace streamfs::lab::model
