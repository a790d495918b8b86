// Lifetimes of vStreams as the device measures them (vSLI, Yong 2021, V-B), in two ways over the
// same flash: exactly by algorithm 1, and by an extension of it. In the extension a live page
// counts with its *exposure*, the time since its write; a copy keeps the write time of its source;
// and old windows decay (learning/lifetime_rules.h). The vStream of a page is in its spare area.
// Clock: host pages written.
//
// Thread safety: none. Memory: 2 bytes a physical page for the spare area, and superpage_stamps.h
// twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "learning/cluster.h"
#include "learning/yong.h"
#include "ssd/ftl/flash_watcher.h"
#include "ssd/ftl/vstream/superpage_stamps.h"
#include "ssd/geometry.h"

namespace streamfs::ssd::vstream {

// A vStream's index in tables: its number + 1. Untagged data (UINT16_MAX) shares the index of
// vStream 65,534.
using Slot = uint16_t;
inline constexpr Slot kDeadSlot = 0;
constexpr Slot slot_of(uint16_t vstream) {
  return vstream == UINT16_MAX ? vstream : static_cast<Slot>(vstream + 1);
}

class Lifetimes final : public FlashWatcher {
 public:
  explicit Lifetimes(const Geometry& geometry);

  // Takes over a programmed page of a device with data; kDeadSlot: it is not live. `written_at` is
  // limited to `clock`, host pages written. Requires: the pages of each block come in order, before
  // all other calls.
  void restore(Ppn at, Slot slot, uint64_t written_at, uint64_t clock);

  void stored(Ppn at, const WriteStamp& stamp) override;
  void read(Ppn at) override { last_read_ = spare_[at]; }
  void copied(Ppn to, Ppn from) override;
  void dies(Ppn at, uint64_t clock) override;

  // Returns the slot of the page that garbage collection read last.
  Slot last_read() const { return last_read_; }
  uint64_t live_vstreams() const;  // with live pages

  // Returns algorithm 1's L(v) = S(v) ÷ |D(v)|; 0 before the first death.
  double published(Slot slot) const { return algorithm_1_.lifetime(VStreamId{slot}); }

  // Begins the first window after the calls of restore(): deaths before it are not known, so the
  // exposure before it does not count either.
  void begin_window(uint64_t clock);
  // Ends a window. Returns the vStreams of known lifetime, weighted by their recent writes;
  // Sample::vstream is the slot.
  std::vector<learning::Sample> close_window(uint64_t clock);
  // Returns the exposure of all live and dead pages of the slot. Superpage means round it.
  double exposure(Slot slot, uint64_t clock) const;

 private:
  struct Counts {
    uint64_t live = 0, written_sum = 0;  // Σ T_written of the living
    uint64_t dead = 0, dead_sum = 0;     // |D|, S
    uint64_t written = 0;
    double exposure = 0, deaths = 0, recent = 0;  // with the weights of the windows
    double exposure_at = 0;
    uint64_t dead_at = 0, written_at = 0;
  };
  Counts& counts(Slot slot);
  void add(Ppn at, uint64_t time);

  const double user_pages_;
  std::vector<Slot> spare_;
  SuperpageStamps programmed_;  // times of programming, for algorithm 1
  SuperpageStamps written_;     // means of the host's write times, for the extension
  learning::yong::LifetimeIdentifier algorithm_1_;
  std::vector<Counts> counts_;  // by slot
  Slot last_read_ = kDeadSlot;
  uint64_t clock_ = 0;
};

}  // namespace streamfs::ssd::vstream
