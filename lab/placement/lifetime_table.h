// LifetimeTable, this project's own, predicts a page's lifetime from life tables by kind of write;
// classifierd learns such tables for streamfs. The kinds form a tree: new or overwriting; in it the
// context (the trace's; the vStream where there is none); in it the place in the request (the last
// page, the last but one, or another). A kind that was seen little leans on the more general one.
// Streams are quantiles of the predicted lifetime by written volume. In the device a copy goes by
// the time that pages of its kind and age have left, to classes of its own: pages that lived to be
// copied are better kept apart from fresh ones with as much time left (measured). Memory: 8 bytes a
// page, some 400 a kind, 65,536 kinds at most.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lab/placement/life_table.h"
#include "lab/placement/page_times.h"
#include "lab/placement/policy.h"
#include "lab/placement/quantile_edges.h"

namespace streamfs::lab {

class LifetimeTable final : public PlacementPolicy {
 public:
  LifetimeTable(uint16_t streams, uint32_t pages);

  uint16_t host_classes() const override { return streams_; }
  uint16_t classes() const override { return static_cast<uint16_t>(streams_ + kCopyClasses); }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override;
  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId source, uint64_t clock) override;
  void trimmed(ssd::Lpn page, uint64_t clock) override;

 private:
  using KindId = uint32_t;
  static constexpr KindId kRoot = 0;  // the parent of the most general kinds; its table is empty
  static constexpr uint16_t kCopyClasses = 3;
  struct Kind {
    KindId parent;      // more general
    double volume = 0;  // pages written of late, not those of narrower kinds
    LifeTable lives;
  };

  KindId kind_of(const PageWrite& write);
  KindId child(KindId parent, uint64_t key);
  // Blends ask()'s estimates from the most general kind to `kind`, each by its weight. Returns
  // `otherwise` if none is known.
  template <typename Ask>
  double blended(KindId kind, double otherwise, Ask ask) const;
  double predicted(KindId kind) const;  // binary logarithm of the lifetime
  void end_epoch(uint64_t clock);

  const uint16_t streams_;
  std::vector<Kind> kinds_;
  std::unordered_map<uint64_t, KindId> known_;  // by key_of() (lifetime_table.cc)
  std::vector<KindId> kind_;                    // by page: of its last write
  PageTimes born_at_;                           // unknown: the page is dead
  QuantileEdges edges_, copy_edges_;
};

}  // namespace streamfs::lab
