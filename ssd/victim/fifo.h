// FIFO: chooses the block that was closed first, whatever its valid pages: a circular log (Menon,
// "A performance comparison of RAID-5 and log-structured arrays", HPDC'95; Desnoyers, SYSTOR'12,
// for SSDs). A choice takes constant time.
// Thread safety: none; the FTL's lock. After a crash: rebuilt in the order of block numbers.
#pragma once

#include "ssd/geometry.h"
#include "ssd/victim/block_lists.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {

class Fifo {
 public:
  static constexpr const char* kName = "fifo";

  explicit Fifo(const Geometry& geometry, const VictimOptions& /*options*/ = {})
      : closed_(1, geometry.blocks) {}

  void add(BlockIndex block, const BlockView& /*view*/) { closed_.append(0, block); }
  void remove(BlockIndex block, uint32_t /*valid*/) { closed_.unlink(0, block); }
  void moved(BlockIndex /*block*/, uint32_t /*from*/, uint32_t /*to*/) {}
  BlockIndex choose(uint64_t /*clock*/) const { return closed_.head(0); }

 private:
  BlockLists closed_;
};

}  // namespace streamfs::ssd
