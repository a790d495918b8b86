// The implementation of Placement, from the vStream table, lifetimes, the model and telemetry.
// Contract and thread safety: placement.h.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuse-fs/placement/lifetime.h"
#include "fuse-fs/placement/model.h"
#include "fuse-fs/placement/name_rules.h"
#include "fuse-fs/placement/placement.h"
#include "fuse-fs/placement/telemetry.h"
#include "fuse-fs/placement/time_scale.h"
#include "fuse-fs/placement/vstream_table.h"
#include "learning/write_ages.h"

namespace streamfs::placement {

class PlacementImpl final : public Placement {
 public:
  PlacementImpl(Store& store, Clock& clock, const Options& options, NameRules rules,
                std::unique_ptr<Model> model, std::unique_ptr<Telemetry> telemetry);

  Mode mode() const override { return options_.mode; }
  const std::vector<std::string>& complaints() const override { return rules_.complaints(); }
  Chosen choose(const CreateContext& context) override;
  Result<VStreamId> by_name(std::string_view name, Source source) override;
  Result<VStreamId> by_number(uint32_t number) override;
  Result<VStreamId> by_rw_hint(uint32_t rw_hint) override;
  VStreamId current(VStreamId stored, uint8_t generation) const override {
    return table_.current(stored, generation);
  }
  VStreamId shown(VStreamId vstream) const override { return table_.shown(vstream); }
  VStreamId told(VStreamId vstream) const override {
    return options_.mode == Mode::kOff ? kDefaultVStream : shown(vstream);
  }
  std::optional<VStreamInfo> info(VStreamId vstream) override;
  std::vector<VStreamInfo> all() override;
  std::optional<BlockBirth> birth(BlockNo block) override;
  std::string describe(VStreamId vstream) override;

  PStreamId route(VStreamId vstream, uint32_t request_pages, uint32_t offset,
                  uint8_t age) const override;
  PStreamId plain_route(VStreamId vstream) const override;
  PStreamId epoch_route(VStreamId vstream, BlockNo block, PStreamId first) const override;
  void route_run(const PageRun& run, bool overwrite, Cursor& cursor,
                 std::vector<RoutedRun>& out) const override;
  void wrote(const PageRun& run, PStreamId stream, uint8_t age) override;
  void trimmed(BlockNo first, uint64_t pages) override;
  void grow(uint64_t capacity_blocks) override;

  Result<std::string> adopt_stored(const std::string& path) override;
  SharedMemory shared_memory() override;
  std::optional<std::string> tick() override;
  std::vector<PStreamId> take_released() override;
  ModelStatus model_status() override;
  std::vector<uint8_t> chunk_classes() override;

 private:
  static constexpr uint32_t kSavesPerTick = 256;  // vStreams stored in META by one tick() at most
  static constexpr uint64_t kSplitPages = 2048;   // pages written between two splits of contexts
  std::optional<Chosen> choose_by_label(const CreateContext& context);
  VStreamInfo measure(VStreamId vstream, const VStreamTable::Entry& entry,
                      const LifetimeTable::Seen& seen);
  uint64_t lifetime_ms(double pages);
  // Returns the lifetime in pages that a vStream's name states, or the profile that has the name.
  std::optional<double> expectation(const std::string& name);
  // Makes expectation(name) the vStream's expected lifetime, and returns it. remap() uses the
  // expected lifetime until one is measured.
  std::optional<double> expect(VStreamId vstream, const std::string& name);
  // Moves a vStream off the default pStream to that of the vStream with the nearest lifetime.
  void place_first(VStreamId vstream, double pages);
  PStreamId nearest(double lifetime_pages, VStreamId but);  // of all vStreams but this one
  // Returns the vStream under which the model has seen the writes of `shown`: `shown` itself if it
  // is older than the model, else its parent (the vStream that it was split from) if the parent is
  // older, else nothing.
  std::optional<VStreamId> known_to(const learning::PlacementModel& model, VStreamId shown) const;
  // Gives vStreams to pStreams by their lifetimes (learning/cluster.h). Requires: tick_mutex_ is
  // held.
  void remap();

  const Options options_;
  const NameRules rules_;
  Clock& clock_;
  LifetimeTable lifetimes_;
  VStreamTable table_;
  learning::WriteAges ages_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Telemetry> telemetry_;
  std::atomic<uint32_t> now_ms_;  // time of the last tick(): the write path reads no clock
  Mutex tick_mutex_;              // locked before the table's mutex
  uint64_t remapped_at_ SFS_GUARDED_BY(tick_mutex_) = 0;
  uint64_t split_at_ SFS_GUARDED_BY(tick_mutex_) = 0;
  Mutex scale_mutex_;  // leaf
  TimeScale scale_ SFS_GUARDED_BY(scale_mutex_);
};

}  // namespace streamfs::placement
