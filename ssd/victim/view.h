// The view of a closing block that a victim policy gets.
//
// A victim policy is one short file here, a template argument of PageMap, with
//   add(block, view)          the block is closed: a candidate
//   moved(block, from, to)    a candidate has `to` valid pages, after `from`
//   remove(block, valid)      a candidate with `valid` valid pages leaves: its collection begins
//   choose(clock)             the block to collect, or kNoBlock
// Clock: host pages written. choose() changes no candidate and may be called without a collection.
// If no candidate has a dead page, it returns kNoBlock or any candidate; the caller looks at
// `valid`.
// Thread safety: none; the FTL's lock. After a crash: rebuilt from the block states.
#pragma once

#include <cstdint>

#include "ssd/ftl/router.h"

namespace streamfs::ssd {

struct BlockView {
  uint32_t valid;
  uint64_t opened_at;  // clock
  FrontierId frontier;
  uint32_t erases;
};

struct VictimOptions {
  uint32_t choices = 10;  // d-choices: blocks drawn for each choice
  uint64_t seed = 1;      // of d-choices' random draws
};

}  // namespace streamfs::ssd
