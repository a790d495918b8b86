// An observer of flash operations, for a placement policy that records the content of the flash.
// Thread safety: none; called in the thread that replays.
#pragma once

#include <cstdint>

#include "ssd/ftl/write_stamp.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

class FlashWatcher {
 public:
  virtual ~FlashWatcher() = default;
  // The host programmed a page.
  virtual void stored(Ppn at, const WriteStamp& stamp) = 0;
  // Garbage collection reads a page and its spare area, and is about to copy it.
  virtual void read(Ppn at) = 0;
  virtual void copied(Ppn to, Ppn from) = 0;
  // Announces that the page dies at `clock`, in host pages written: the host overwrites or trims it
  // next. Garbage collection may run in between, so copied() of this page may still follow.
  virtual void dies(Ppn at, uint64_t clock) = 0;
};

}  // namespace streamfs::ssd
