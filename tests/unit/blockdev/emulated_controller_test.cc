// The emulated controller as a host sees it: what it answers, refuses and forgets.
#include "fuse-fs/blockdev/emulated_controller.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/query.h"
#include "fuse-fs/nvme/structures.h"
#include "tests/unit/blockdev/nvme_fixture.h"

namespace streamfs::blockdev {
namespace {

using nvme::Mechanism;

int code_of(const Result<uint32_t>& result) {
  return result.ok() ? 0 : result.error().code;
}

Result<uint32_t> write(nvme::Controller& ssd, uint64_t lba, uint8_t directive, uint16_t specific) {
  std::vector<std::byte> page(kBlockSize, std::byte{1});
  return ssd.io(nvme::write(1, {lba, 1, directive, specific}), page);
}

TEST_F(NvmeTest, StreamsAnswerOnlyWhileEnabled) {
  EmulatedController& ssd = controller(kStreamsSsd);
  const auto directives = nvme::directive_parameters(ssd).value();
  EXPECT_TRUE(directives.supports(1) && (directives.enabled & 2) == 0 && !directives.supports(2));
  EXPECT_EQ(nvme::streams_parameters(ssd).error().code, EINVAL);
  EXPECT_EQ(code_of(ssd.admin(nvme::allocate_streams(1, 2), {})), EINVAL);
  EXPECT_EQ(code_of(write(ssd, 0, 1, 1)), EINVAL);
  EXPECT_EQ(code_of(write(ssd, 0, 2, 1)), EINVAL);
  EXPECT_EQ(code_of(write(ssd, 0, 0, 0)), 0);
  ASSERT_TRUE(ssd.admin(nvme::enable_directive(1, 1, true), {}).ok());
  EXPECT_EQ(code_of(ssd.admin(nvme::enable_directive(1, 2, true), {})), EINVAL);
  EXPECT_NE(nvme::directive_parameters(ssd)->enabled & 2, 0);
  const auto streams = nvme::streams_parameters(ssd).value();
  EXPECT_EQ(streams.msl, 3u);
  EXPECT_EQ(streams.nssa, 3u);
  EXPECT_EQ(uint64_t{streams.sws} * streams.sgs, 32u);
  EXPECT_EQ(code_of(write(ssd, 0, 1, 1)), 0);
}

TEST_F(NvmeTest, AllocatedStreamsMakeRoomForEachOtherAndAResetTakesThemAway) {
  EmulatedController& ssd = controller(kStreamsSsd);
  ASSERT_TRUE(ssd.admin(nvme::enable_directive(1, 1, true), {}).ok());
  EXPECT_EQ(ssd.admin(nvme::allocate_streams(1, 2), {}).value(), 2u);
  EXPECT_EQ(code_of(ssd.admin(nvme::allocate_streams(1, 1), {})), EINVAL);
  EXPECT_EQ(nvme::streams_parameters(ssd)->nssa, 1u);
  for (const uint16_t id : std::array<uint16_t, 3>{700, 800, 900})
    EXPECT_EQ(code_of(write(ssd, 0, 1, id)), 0);
  EXPECT_EQ(nvme::open_streams(ssd, kBlockSize).value(), (std::vector<uint16_t>{800, 900}));
  EXPECT_EQ(pages_of_stream(1), 2u);  // 900 took 700's place
  EXPECT_EQ(pages_of_stream(2), 1u);
  ASSERT_TRUE(ssd.admin(nvme::directive_send(1, 1, 1, 800), {}).ok());
  EXPECT_EQ(nvme::open_streams(ssd, kBlockSize).value(), (std::vector<uint16_t>{900}));
  ASSERT_TRUE(ssd.admin(nvme::directive_send(1, 1, 2, 0), {}).ok());
  EXPECT_EQ(nvme::streams_parameters(ssd)->nsa, 0u);
  EXPECT_TRUE(nvme::open_streams(ssd, kBlockSize)->empty());
  ssd.reset();
  EXPECT_EQ(nvme::streams_parameters(ssd).error().code, EINVAL);
  EXPECT_EQ(code_of(write(ssd, 0, 1, 900)), EINVAL);
}

TEST_F(NvmeTest, WhenOthersHaveAllStreamsAllocationFails) {
  EmulatedController& ssd = controller({.streams_of_others = 3});
  ASSERT_TRUE(ssd.admin(nvme::enable_directive(1, 1, true), {}).ok());
  EXPECT_EQ(code_of(ssd.admin(nvme::allocate_streams(1, 2), {})), ENOSPC);
}

TEST_F(NvmeTest, FdpTellsItsConfigurationHandlesAndStatistics) {
  EmulatedController& ssd = controller(kFdpSsd);
  EXPECT_EQ(nvme::fdp_feature(ssd, 1).value(), std::optional<uint8_t>(0));
  EXPECT_EQ(nvme::fdp_feature(ssd, 2).error().code, EINVAL);
  const auto all = nvme::fdp_configurations(ssd, 1).value();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].valid());
  EXPECT_EQ(all[0].reclaim_unit_bytes, 32 * kBlockSize);
  EXPECT_EQ(all[0].types, (std::vector<uint8_t>{2, 2, 2, 2}));
  EXPECT_EQ(nvme::fdp_statistics(ssd, 2).error().code, EINVAL);
  for (uint64_t lba = 0; lba < 40; ++lba) ASSERT_TRUE(write(ssd, lba, 2, 3).ok());
  const auto statistics = nvme::fdp_statistics(ssd, 1).value();
  EXPECT_EQ(statistics.host_written.value, 40 * kBlockSize);
  EXPECT_EQ(statistics.media_written.value, 40 * kBlockSize);
  const auto handles = nvme::ruh_statuses(ssd).value();
  ASSERT_EQ(handles.size(), 4u);
  EXPECT_EQ(handles[3], (nvme::RuhStatus{3, 3, 0, 24}));
  EXPECT_EQ(handles[1], (nvme::RuhStatus{1, 1, 0, 32}));
}

TEST_F(NvmeTest, AHandleUpdateBeginsANewUnit) {
  EmulatedController& ssd = controller(kFdpSsd);
  ASSERT_TRUE(write(ssd, 0, 2, 3).ok());
  std::vector<std::byte> placements = nvme::encode_placements(std::vector<uint16_t>{3, 1});
  ASSERT_TRUE(ssd.io(nvme::ruh_update(1, 2), placements).ok());
  EXPECT_EQ(nvme::ruh_statuses(ssd)->at(3).writable_lbas, 32u);
  placements = nvme::encode_placements(std::vector<uint16_t>{4});
  EXPECT_EQ(code_of(ssd.io(nvme::ruh_update(1, 1), placements)), EINVAL);
}

TEST_F(NvmeTest, AnInvalidPlacementIsTakenAsTheFirst) {
  EmulatedController& ssd = controller(kFdpSsd);
  ASSERT_TRUE(write(ssd, 0, 2, 99).ok());
  EXPECT_EQ(pages_of_stream(0), 1u);
}

TEST_F(NvmeTest, WithFdpOffItsCommandsSaySo) {
  EmulatedController& ssd = controller({.mechanism = Mechanism::kFdp, .fdp_enabled = false});
  EXPECT_EQ(nvme::fdp_feature(ssd, 1).value(), std::nullopt);
  EXPECT_EQ(nvme::fdp_statistics(ssd, 1).error().code, EOPNOTSUPP);
  EXPECT_EQ(nvme::ruh_statuses(ssd).error().code, EOPNOTSUPP);
  EXPECT_TRUE(nvme::fdp_configurations(ssd, 1).ok());
  EXPECT_EQ(code_of(write(ssd, 0, 2, 0)), EINVAL);
}

TEST_F(NvmeTest, CommandsThatCannotBeAreRefused) {
  EmulatedNvme kind = kFdpSsd;
  kind.lba_bytes = 512;
  EmulatedController& ssd = controller(kind);
  std::vector<std::byte> bytes(kBlockSize);
  EXPECT_EQ(code_of(ssd.io(nvme::write(2, {0, 8}), bytes)), ENXIO);
  EXPECT_EQ(code_of(ssd.io(nvme::write(1, {1, 8}), bytes)), EINVAL);  // a page in part
  EXPECT_EQ(code_of(ssd.io(nvme::write(1, {0, 9}), bytes)), EINVAL);  // not as much data
  EXPECT_EQ(code_of(ssd.io(nvme::write(1, {kBlocks * 8, 8}), bytes)), ERANGE);
  EXPECT_EQ(code_of(ssd.io(nvme::read(1, {kBlocks * 8, 8}), bytes)), ERANGE);
  EXPECT_EQ(code_of(ssd.io({0x7f, 1, {}}, {})), EOPNOTSUPP);
  EXPECT_EQ(code_of(ssd.admin({0x7f, 1, {}}, {})), EOPNOTSUPP);
  EXPECT_EQ(code_of(ssd.admin(nvme::identify(0x33, 1), bytes)), EINVAL);
  EXPECT_EQ(code_of(ssd.admin(nvme::get_log_page({0x77}, 0, 64), bytes)), EINVAL);
  EXPECT_EQ(code_of(ssd.admin(nvme::get_log_page({0x77}, 0, bytes.size()), bytes)), EOPNOTSUPP);
  std::vector<std::byte> large(256 * 1024);
  EXPECT_EQ(code_of(ssd.io(nvme::read(1, {0, 512}), large)), EINVAL);  // MDTS
}

TEST_F(NvmeTest, ADeallocatedRangeReadsAsZeroesInItsWholePages) {
  EmulatedNvme kind = kFdpSsd;
  kind.lba_bytes = 512;
  EmulatedController& ssd = controller(kind);
  std::vector<std::byte> pages(3 * kBlockSize, std::byte{5});
  ASSERT_TRUE(ssd.io(nvme::write(1, {0, 24}), pages).ok());
  std::vector<std::byte> ranges = nvme::encode_ranges(std::vector<nvme::Range>{{1, 16}});
  ASSERT_TRUE(ssd.io(nvme::deallocate(1, 1), ranges).ok());
  ASSERT_TRUE(ssd.io(nvme::read(1, {0, 24}), pages).ok());
  EXPECT_EQ(pages[0], std::byte{5});
  EXPECT_EQ(pages[kBlockSize], std::byte{0});
  EXPECT_EQ(pages[2 * kBlockSize], std::byte{5});
}

}  // namespace
}  // namespace streamfs::blockdev
