// Measured lifetimes (vSLI: Yong, "vStream-FTL", 2021, algorithm 1, with the living counted).
//
// Clock: 4 KiB pages written to the device. The exposure of a vStream, E = ∫ live pages d(clock),
// is
//   E(now) = S_dead + n_live · now − Σ T_written over its living pages,
// where S_dead is the sum of the dead pages' lifetimes. E is exact in O(1), because birth and death
// are the only changes. The mean lifetime is E ÷ deaths. Both are summed over windows. Once a
// vStream has more than kHistoryDeaths deaths, each new window multiplies the sum by kDecay. E is
// computed modulo 2^64. The mean lifetime uses its differences over a window, which fit; only the
// lower bound of estimate_pages() uses E itself.
//
// A stamp {clock, vStream, which pages live} stands for 64 KiB. A write to part of such a unit
// gives the whole unit the writer's vStream. If the unit had that vStream already, its clock
// becomes the mean write time of its living pages. If it had another vStream, its clock becomes the
// present time: the surviving pages count as written now, and their exposure so far stays with the
// old vStream.
//
// Thread safety: any thread, lock-free, except that close_window() and sweep() are for one thread
// at a time, and so is grow(). Crash: memory only; the vStream table stores each vStream's
// lifetime.
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
  static constexpr double kPriorDeaths = 64;  // weight of a persisted lifetime, in deaths

  explicit LifetimeTable(uint64_t capacity_blocks);
  ~LifetimeTable();

  // Extends the table to `capacity_blocks`. If memory is short, the new blocks have no stamps and
  // nothing is learnt from them. Requires: one call at a time.
  void grow(uint64_t capacity_blocks);

  uint64_t now() const { return clock_.load(std::memory_order_relaxed); }
  // Counts pages as written by `vstream`; the data they held dies. Returns the clock before.
  uint64_t born(BlockNo first, uint32_t pages, VStreamId vstream);
  void died(BlockNo first, uint64_t pages);

  // Ends a window for every vStream.
  void close_window();
  // Keeps stamps from wrapping around their 32 bits. Requires: called at least once per 2 TiB
  // written. Looks at every stamp once per 2 TiB and is cheap otherwise.
  void sweep();

  // All measurements of a vStream. Several add up to those of their union.
  struct Seen {
    double exposure = 0, deaths = 0;  // summed over the windows, as described above
    double recent_pages = 0;          // written; each window multiplies the sum by kDecay
    double expected_pages = 0;        // set_expected(); of a sum, the largest
    uint64_t written_pages = 0, live_pages = 0, dead_pages = 0;
    uint64_t lived_pages = 0;  // exposure since the table was made or forget()
    Seen& operator+=(const Seen& other);
    // Returns the mean lifetime; nothing with fewer than kDeathsMin deaths.
    std::optional<double> lifetime_pages() const;
    bool nothing() const { return written_pages == 0 && deaths == 0 && expected_pages <= 0; }
  };
  Seen seen(VStreamId vstream) const;
  std::optional<double> lifetime_pages(VStreamId vstream) const;
  // Returns the measured lifetime if there is one. Else returns the larger of two figures, the only
  // one that exists, or nothing: the expected lifetime; and a lower bound, E ÷ (deaths + 1), which
  // exists once kStampPages pages were written and E ÷ (pages written) is a quarter of the
  // capacity.
  std::optional<double> estimate_pages(const Seen& seen) const;
  // Sets the lifetime to use until one is measured. Both 0 and a negative value stand for none. 0:
  // the caller may know one later, and asks again; < 0: it never will.
  void set_expected(VStreamId vstream, double lifetime_pages);
  double expected_pages(VStreamId vstream) const;
  // Forgets the measurements of a number before its next use. Requires: none of its pages lives.
  void forget(VStreamId vstream);
  // Sets a lifetime measured before this mount, with the weight of kPriorDeaths deaths.
  void set_prior(VStreamId vstream, double lifetime_pages);
  uint64_t written_pages(VStreamId vstream) const;
  uint64_t live_pages(VStreamId vstream) const;

  // The birth of a live page. Its clock is the mean over the live pages of its stamp. birth()
  // returns nothing for a page that is dead or was not written since the table was made.
  struct Birth {
    VStreamId vstream;
    uint64_t clock = 0;
  };
  std::optional<Birth> birth(BlockNo page) const;

  // Returns the exposure in pages since the table was made or forget().
  uint64_t exposure(VStreamId vstream) const;

 private:
  struct alignas(64) Counts {
    std::atomic<uint64_t> live{0};         // n_live
    std::atomic<uint64_t> written_sum{0};  // Σ T_written of the living
    std::atomic<uint64_t> dead_sum{0};     // S_dead
    std::atomic<uint64_t> dead{0};
    std::atomic<uint64_t> written{0};
  };
  struct Window {  // sums over closed windows, and the counts when the last one was closed
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

  // Stamps by unit, in one piece at first and one more for each growth. Stamps never move.
  using Piece = ZeroedArray<std::atomic<uint64_t>>;
  static constexpr size_t kPiecesMax = 64;
  std::atomic<uint64_t>& stamp(uint64_t unit) const;
  uint64_t pages() const { return units_.load(std::memory_order_acquire) * kStampPages; }

  std::array<Piece, kPiecesMax> pieces_;
  size_t pieces_used_ = 0;          // used by grow() alone
  std::atomic<uint64_t> units_{0};  // in all pieces; its release store publishes a new piece
  std::unique_ptr<std::array<Counts, kVStreams>> counts_;
  std::unique_ptr<std::array<Window, kVStreams>> windows_;
  std::atomic<uint64_t> clock_{1};
  uint64_t swept_at_ = 0;
};

}  // namespace streamfs::placement
