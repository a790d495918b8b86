// Media without data: replay at full speed over the same FTL. Every call compiles to nothing.
#pragma once

#include <cstddef>
#include <span>

#include "emulator/ftl/page_map.h"

namespace streamfs::emulator {

class NullMedia {
 public:
  int store(Ppn, const std::byte*, uint32_t) { return 0; }
  int move(std::span<const Ppn>, Ppn) { return 0; }
  void stamp_host(Ppn, Lpn, WriteStamp) {}
  void stamp_copy(Ppn, Ppn, uint64_t) {}
  void stamp_pad(Ppn, uint64_t) {}
  void opened(BlockIndex, FrontierId) {}
  void committed(BlockIndex, uint32_t) {}
  bool erased(BlockIndex) { return true; }
  void failed(BlockIndex) {}
  void retired(BlockIndex) {}
};

}  // namespace streamfs::emulator
