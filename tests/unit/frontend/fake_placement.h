// A placement::Placement for tests of the control socket: one vStream, two descriptors.
// Thread safety: none needed.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/placement/placement.h"

namespace streamfs::frontend {

class FakePlacement final : public placement::Placement {
 public:
  static constexpr uint64_t kWritten = 7;  // the one block that it knows
  FakePlacement()
      : telemetry_(memfd_create("telemetry", MFD_CLOEXEC)),
        model_(memfd_create("model", MFD_CLOEXEC)) {
    (void)!::write(telemetry_, "T", 1);
    (void)!::write(model_, "M", 1);
  }
  ~FakePlacement() override { close(telemetry_), close(model_); }
  FakePlacement(const FakePlacement&) = delete;
  FakePlacement& operator=(const FakePlacement&) = delete;

  placement::Mode mode() const override { return placement::Mode::kAuto; }
  const std::vector<std::string>& complaints() const override { return complaints_; }
  placement::Chosen choose(const placement::CreateContext& /*context*/) override { return {}; }
  Result<VStreamId> by_name(std::string_view /*name*/, placement::Source /*source*/) override {
    return VStreamId{1};
  }
  Result<VStreamId> by_number(uint32_t /*number*/) override { return VStreamId{1}; }
  Result<VStreamId> by_rw_hint(uint32_t /*hint*/) override { return VStreamId{1}; }
  VStreamId current(VStreamId stored, uint8_t /*generation*/) const override { return stored; }
  VStreamId shown(VStreamId vstream) const override { return vstream; }
  VStreamId told(VStreamId vstream) const override { return vstream; }
  std::optional<placement::VStreamInfo> info(VStreamId /*vstream*/) override { return one(); }
  std::vector<placement::VStreamInfo> all() override { return {one()}; }
  std::optional<placement::BlockBirth> birth(BlockNo block) override {
    if (block.value != kWritten) return std::nullopt;
    return placement::BlockBirth{VStreamId{42}, PStreamId{1}, 100, 350};
  }
  std::string describe(VStreamId /*vstream*/) override { return "wal"; }
  PStreamId route(VStreamId /*vstream*/, uint32_t /*request_pages*/, uint32_t /*offset*/,
                  uint8_t /*age*/) const override {
    return PStreamId{0};
  }
  PStreamId plain_route(VStreamId /*vstream*/) const override { return PStreamId{0}; }
  PStreamId epoch_route(VStreamId /*vstream*/, BlockNo /*block*/, PStreamId first) const override {
    return first;
  }
  void route_run(const placement::PageRun& /*run*/, bool /*overwrite*/, Cursor& /*cursor*/,
                 std::vector<placement::RoutedRun>& /*out*/) const override {}
  void wrote(const placement::PageRun& /*run*/, PStreamId /*stream*/, uint8_t /*age*/) override {}
  void trimmed(BlockNo /*first*/, uint64_t /*pages*/) override {}
  void grow(uint64_t /*capacity_blocks*/) override {}
  Result<std::string> adopt_stored(const std::string& /*path*/) override { return Error{ENOENT}; }
  SharedMemory shared_memory() override { return {telemetry_, model_, 64, 128}; }
  std::optional<std::string> tick() override { return std::nullopt; }
  std::vector<uint8_t> chunk_classes() override { return {0, 2, 2, 1}; }
  std::vector<PStreamId> take_released() override { return {}; }
  placement::ModelStatus model_status() override { return {}; }

 private:
  static placement::VStreamInfo one() {
    placement::VStreamInfo info;
    info.vstream = VStreamId{42};
    info.source = placement::Source::kHint;
    info.name = "wal";
    info.dir = "caf\xe9";  // Latin-1
    info.lifetime_bytes = 777;
    info.lifetime_low_bytes = 700;
    info.lifetime_high_bytes = 900;
    info.pstream = PStreamId{1};
    return info;
  }
  int telemetry_, model_;
  std::vector<std::string> complaints_;
};

}  // namespace streamfs::frontend
