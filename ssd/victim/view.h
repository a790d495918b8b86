// What a victim policy is told of a block when it closes.
//
// A victim policy is one short file here, a template argument of PageMap, with
//   add(block, view)          closed, from now on a candidate
//   moved(block, from, to)    a candidate's valid pages
//   remove(block, valid)      no longer one: it is being collected
//   choose(clock)             the block to collect; kNoBlock: there is no candidate
// Clock: host pages written. choose() may answer a block without a dead page; collecting it frees
// nothing. Thread safety: none; the FTL's lock. Crash: rebuilt from the block states.
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
  uint64_t seed = 1;      // of those that draw
};

}  // namespace streamfs::ssd
