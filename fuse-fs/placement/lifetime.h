// Measured lifetimes (vSLI: Yong, "vStream-FTL", 2021, algorithm 1, with the living counted).
//
// Clock: 4 KiB pages written to the device. The exposure of a vStream, E = ∫ live pages d(clock),
// is
//   E(now) = S_dead + n_live · now − Σ T_written over its living pages,
// exact in O(1), because birth and death are the only changes. Its mean lifetime is E ÷ deaths.
// Over decaying windows both are summed with weights that fall by kDecay a window. The sums are
// modulo 2^64; differences over a window are what is used, and those fit.
//
// One stamp {clock, vStream, which pages live} stands for 64 KiB. A write to part of such a unit
// gives the whole unit the mean write time of its living pages and the writer's vStream; where that
// is another vStream, the survivors start anew and what they were exposed to stays with the old.
//
// Thread safety: born() and died() any thread, lock-free; close_window() and sweep() one thread at
// a time; grow() beside all of them; the rest any thread. Crash: memory only; what persists is a
// vStream's lifetime.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/types.h"
#include "base/zeroed_array.h"
#include "learning/lifetime_rules.h"

namespace streamfs::placement {

inline constexpr uint32_t kVStreams = 65536;
inline constexpr uint32_t kStampPages = 16;  // 64 KiB

class LifetimeTable {
 public:
  static constexpr double kDecay = learning::kLifetimeDecay;
  static constexpr double kHistoryDeaths = learning::kHistoryDeaths;
  static constexpr double kDeathsMin = learning::kDeathsMin;
  static constexpr double kPriorDeaths = 64;  // what a persisted lifetime weighs

  explicit LifetimeTable(uint64_t capacity_blocks);
  ~LifetimeTable();

  // The device has so many blocks now. One thread at a time.
  void grow(uint64_t capacity_blocks);

  uint64_t now() const { return clock_.load(std::memory_order_relaxed); }
  // Pages of the device were written by `vstream`; what lived there dies. Returns the clock before.
  uint64_t born(BlockNo first, uint32_t pages, VStreamId vstream);
  void died(BlockNo first, uint64_t pages);

  // Ends a window for every vStream.
  void close_window();
  // Keeps stamps from wrapping around their 32 bits; call it now and then. Cheap unless 2 TiB were
  // written since it last worked.
  void sweep();

  // Everything seen of a vStream. The sum of several is as if they were one vStream.
  struct Seen {
    double exposure = 0, deaths = 0;  // pages lived, with the weights of the windows
    double recent_pages = 0;          // written, with the same weights
    double expected_pages = 0;        // set_expected()
    uint64_t written_pages = 0, live_pages = 0, dead_pages = 0;
    uint64_t lived_pages = 0;  // exposure since the table was made
    Seen& operator+=(const Seen& other);
    // Mean lifetime, when there is enough history.
    std::optional<double> lifetime_pages() const;
    bool nothing() const { return written_pages == 0 && deaths == 0 && expected_pages <= 0; }
  };
  Seen seen(VStreamId vstream) const;
  std::optional<double> lifetime_pages(VStreamId vstream) const;
  // The same, or what is expected, or for what has lived long without dying a bound from below:
  // where to put it is known before how long it lives is.
  std::optional<double> estimate_pages(const Seen& seen) const;
  // What to go by until there is history; 0: nothing was said, < 0: nothing will be.
  void set_expected(VStreamId vstream, double lifetime_pages);
  double expected_pages(VStreamId vstream) const;
  // Forgets what was seen of the number, for another use. Requires: none of its pages lives.
  void forget(VStreamId vstream);
  // A lifetime measured before this mount.
  void set_prior(VStreamId vstream, double lifetime_pages);
  uint64_t written_pages(VStreamId vstream) const;
  uint64_t live_pages(VStreamId vstream) const;

  // Of a page that lives, if it was written since the table was made; its clock is the mean of its
  // stamp's pages.
  struct Birth {
    VStreamId vstream;
    uint64_t clock = 0;
  };
  std::optional<Birth> birth(BlockNo page) const;

  // Exposure and deaths since the table was made: for tests of exactness.
  uint64_t exposure(VStreamId vstream) const;

 private:
  struct alignas(64) Counts {
    std::atomic<uint64_t> live{0};         // n_live
    std::atomic<uint64_t> written_sum{0};  // Σ T_written of the living
    std::atomic<uint64_t> dead_sum{0};     // S_dead
    std::atomic<uint64_t> dead{0};
    std::atomic<uint64_t> written{0};
  };
  struct Window {  // of the thread that closes windows; read by others
    std::atomic<double> exposure{0}, deaths{0}, written{0};
    std::atomic<uint64_t> exposure_at{0}, dead_at{0}, written_at{0};
    std::atomic<double> expected{0};
  };
  uint64_t written_at(uint32_t stamp_clock) const;
  void replace(std::atomic<uint64_t>& unit, uint32_t dying, uint32_t newborn, VStreamId vstream);
  void leave(uint64_t stamp, uint32_t dying, uint64_t clock);
  void enter(uint64_t stamp);
  void carry_age(uint64_t old, uint64_t next, uint32_t surviving, uint64_t clock);
  uint32_t shared_clock(uint64_t old, uint32_t live, uint16_t owner, uint64_t clock) const;
  void age_stamp(std::atomic<uint64_t>& unit, uint64_t now);

  // Stamps by unit: the first ones, and more for each growth; none ever moves.
  using Piece = ZeroedArray<std::atomic<uint64_t>>;
  static constexpr size_t kPiecesMax = 64;
  std::atomic<uint64_t>& stamp(uint64_t unit) const;
  uint64_t pages() const { return units_.load(std::memory_order_acquire) * kStampPages; }

  std::array<Piece, kPiecesMax> pieces_;
  size_t pieces_used_ = 0;          // of the one who grows
  std::atomic<uint64_t> units_{0};  // in all pieces; stored after a piece is whole
  std::unique_ptr<std::array<Counts, kVStreams>> counts_;
  std::unique_ptr<std::array<Window, kVStreams>> windows_;
  std::atomic<uint64_t> clock_{1};
  uint64_t swept_at_ = 0;
};

}  // namespace streamfs::placement
