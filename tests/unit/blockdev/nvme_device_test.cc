// NvmeDevice against the emulated controller: discovery, placement, limits and what goes wrong. No
// real device has been asked any of this yet.
#include "fuse-fs/blockdev/nvme_device.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/describe.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/emulated_controller.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/linux.h"
#include "fuse-fs/nvme/query.h"
#include "fuse-fs/nvme/status.h"
#include "fuse-fs/nvme/structures.h"
#include "ssd/ssd.h"
#include "tests/unit/blockdev/nvme_fixture.h"

namespace streamfs::blockdev {
namespace {

using nvme::Command;
using nvme::Mechanism;

// An answer of the controller's, changed.
template <typename T>
Witness::After changed(uint8_t opcode, uint32_t cdw10, void (*change)(T&)) {
  return [=](const Command& command, Bytes data) {
    if (command.opcode != opcode || command.cdw10() != cdw10) return;
    T value = nvme::decode<T>(data);
    change(value);
    std::ranges::copy(nvme::encode(value), data.begin());
  };
}

bool streams_are_enabled(nvme::Controller& controller) {
  return (nvme::directive_parameters(controller)->enabled >> nvme::directive::kStreams & 1) != 0;
}

TEST_F(NvmeTest, FdpWritesGoToTheHandleOfTheirPStream) {
  const auto ssd = device(kFdpSsd);
  EXPECT_EQ(ssd->found().mechanism, Mechanism::kFdp);
  EXPECT_EQ(ssd->info().pstream_count, 4u);
  EXPECT_EQ(ssd->info().erase_unit_blocks, 32u);
  EXPECT_EQ(ssd->info().gc_mode, "own") << "its handles are persistently isolated";
  EXPECT_EQ(ssd->placement(PStreamId{0}), Placement{});
  EXPECT_EQ(ssd->placement(PStreamId{2}), (Placement{2, 2}));
  EXPECT_EQ(ssd->placement(PStreamId{4}), Placement{});
  EXPECT_EQ(ssd->honoured().value(), std::nullopt);
  ASSERT_TRUE(put(*ssd, 10, 5, 1, 2).ok());
  EXPECT_EQ(pages_of_stream(2), 5u);
  EXPECT_EQ(pages_of_stream(0), 0u);
  EXPECT_EQ(ssd->honoured().value(), std::optional(true));
  EXPECT_EQ(ssd->stats()->streams.at(2).written_bytes, 5 * kBlockSize);
}

TEST_F(NvmeTest, StreamsAreEnabledAllocatedAndGivenBack) {
  auto ssd = device(kStreamsSsd);
  EXPECT_EQ(ssd->found().mechanism, Mechanism::kStreams);
  EXPECT_EQ(ssd->info().pstream_count, 4u);
  EXPECT_EQ(ssd->info().erase_unit_blocks, 32u);
  EXPECT_EQ(ssd->info().gc_mode, "") << "Streams do not tell";
  EXPECT_EQ(ssd->placement(PStreamId{3}), (Placement{1, 3}));
  EXPECT_TRUE(streams_are_enabled(*controller_));
  EXPECT_EQ(nvme::streams_parameters(*controller_)->nsa, 3u);
  EXPECT_EQ(ssd->honoured().value(), std::nullopt);
  ASSERT_TRUE(put(*ssd, 10, 5, 1, 3).ok());
  ASSERT_TRUE(put(*ssd, 20, 7, 1, 1).ok());
  ASSERT_TRUE(put(*ssd, 30, 1, 1, 0).ok());
  EXPECT_EQ(pages_of_stream(0), 1u);
  EXPECT_EQ(pages_of_stream(1) + pages_of_stream(2) + pages_of_stream(3), 12u);
  EXPECT_EQ(nvme::open_streams(*controller_, kBlockSize).value(), (std::vector<uint16_t>{3, 1}));
  EXPECT_EQ(ssd->honoured().value(), std::optional(true));
  ssd.reset();
  EXPECT_FALSE(streams_are_enabled(*controller_));
}

TEST_F(NvmeTest, AStreamThatIsReleasedIsFreeForOthersAndTakenAgainByAWrite) {
  auto ssd = device(kStreamsSsd);
  ASSERT_TRUE(put(*ssd, 10, 5, 1, 3).ok());
  ASSERT_TRUE(put(*ssd, 20, 5, 1, 1).ok());
  ASSERT_TRUE(ssd->release(PStreamId{3}).ok());
  EXPECT_EQ(nvme::open_streams(*controller_, kBlockSize).value(), (std::vector<uint16_t>{1}));
  ASSERT_TRUE(ssd->release(PStreamId{2}).ok()) << "it was not open";
  ASSERT_TRUE(ssd->release(PStreamId{0}).ok()) << "none";
  ASSERT_TRUE(put(*ssd, 30, 5, 1, 3).ok());
  EXPECT_EQ(nvme::open_streams(*controller_, kBlockSize).value(), (std::vector<uint16_t>{1, 3}));
}

// I/O Management Send, management operation 1; the identifiers are 16-bit words of its data.
TEST_F(NvmeTest, AHandleThatIsReleasedGoesOnInAnotherReclaimUnit) {
  std::vector<std::byte> identifiers;
  log_.after_io = [&](const Command& command, Bytes data) {
    if (command.opcode == nvme::opcode::kIoManagementSend)
      identifiers.assign(data.begin(), data.end());
  };
  const auto ssd = device(kFdpSsd);
  const auto updates = [&] {
    return std::ranges::count(log_.io, nvme::opcode::kIoManagementSend, &Command::opcode);
  };
  ASSERT_TRUE(ssd->release(PStreamId{2}).ok());
  EXPECT_EQ(updates(), 0) << "nothing of ours is in its unit";
  ASSERT_TRUE(put(*ssd, 10, 5, 1, 2).ok());
  ASSERT_TRUE(put(*ssd, 20, 5, 1, 3).ok());
  ASSERT_TRUE(ssd->release(PStreamId{2}).ok());
  ASSERT_EQ(updates(), 1);
  EXPECT_EQ(log_.io.back(), (Command{0x1d, 1, {1}}));
  EXPECT_EQ(identifiers, (std::vector{std::byte{2}, std::byte{0}}));
  const auto handles = nvme::ruh_statuses(*controller_).value();
  EXPECT_EQ(handles.at(2).writable_lbas, 32u);
  EXPECT_EQ(handles.at(3).writable_lbas, 27u);
  ASSERT_TRUE(ssd->release(PStreamId{2}).ok());
  EXPECT_EQ(updates(), 1) << "again there is nothing of ours";
  const auto free_blocks = [&] { return ssd::observe_stats(directory_ + "/ssd")->free_blocks; };
  const uint64_t before = free_blocks();
  ASSERT_TRUE(put(*ssd, 30, 5, 1, 2).ok());
  EXPECT_EQ(free_blocks(), before - 1) << "it began another block";
  ASSERT_TRUE(put(*ssd, 40, 5, 1, 2).ok());
  EXPECT_EQ(free_blocks(), before - 1);
  ASSERT_TRUE(ssd->release(PStreamId{2}).ok());
  EXPECT_EQ(updates(), 2);
  ASSERT_TRUE(ssd->release(PStreamId{0}).ok()) << "no handle of ours";
  EXPECT_TRUE(holds(*ssd, 10, 5, 1));
}

TEST_F(NvmeTest, StreamsLeftByADeadProcessAreTakenOver) {
  EmulatedController& same = controller(kStreamsSsd);
  EXPECT_EQ(nvme::take_streams(same, 2).value(), 2u);
  EXPECT_EQ(nvme::take_streams(same, 100).value(), 2u);
  const auto next = NvmeDevice::open(std::make_unique<Witness>(same, log_), {});
  EXPECT_EQ((*next)->info().pstream_count, 3u);
}

TEST_F(NvmeTest, ThePlacementIdentifierIsTheOneThatHandleStatusGives) {
  log_.after_io = [](const Command& command, Bytes data) {
    if (command.opcode != nvme::opcode::kIoManagementReceive) return;
    for (size_t at = 16; at < data.size(); at += 32) data[at + 1] = std::byte{0x50};
  };
  const auto ssd = device(kFdpSsd);
  EXPECT_EQ(ssd->placement(PStreamId{1}), (Placement{2, 0x5001}));
  ASSERT_TRUE(put(*ssd, 0, 1, 1, 1).ok());
  EXPECT_EQ(sent(nvme::opcode::kWrite).at(0).specific, 0x5001u);
  // This device has no such handle after all, takes the write, and it shows.
  EXPECT_EQ(ssd->honoured().value(), std::optional(false));
  EXPECT_EQ(pages_of_stream(0), 1u);
}

TEST_F(NvmeTest, TrimsKeepToWhatTheControllerTakes) {
  EmulatedNvme kind = kFdpSsd;
  kind.limits = {2, 8, 12};
  const auto ssd = device(kind);
  EXPECT_EQ(describe(*ssd)["limits"]["trim_ranges"], 2);
  EXPECT_EQ(describe(*ssd)["limits"]["trim_range_bytes"], 8 * kBlockSize);
  ASSERT_TRUE(put(*ssd, 0, 100, 1, 1).ok());
  ASSERT_TRUE(ssd->trim(BlockNo{1}, 50).ok());  // one that exceeded a limit would have failed
  EXPECT_EQ(sent(nvme::opcode::kDatasetManagement).size(), 5u);
  EXPECT_TRUE(holds(*ssd, 0, 1, 1));
  EXPECT_TRUE(holds(*ssd, 1, 50, 0));
  EXPECT_TRUE(holds(*ssd, 51, 49, 1));
  log_.after_admin = changed<nvme::NamespaceIdentity>(nvme::opcode::kIdentify, nvme::kCnsNamespace,
                                                      [](nvme::NamespaceIdentity& id) {
                                                        id.npdg = 7;
                                                        id.npda = 7;
                                                      });
  const auto coarse = device(kFdpSsd);
  ASSERT_TRUE(put(*coarse, 0, 100, 1, 1).ok());
  ASSERT_TRUE(coarse->trim(BlockNo{1}, 50).ok());
  EXPECT_TRUE(holds(*coarse, 0, 8, 1));
  EXPECT_TRUE(holds(*coarse, 8, 40, 0));
  EXPECT_TRUE(holds(*coarse, 48, 52, 1));
}

TEST_F(NvmeTest, RequestsAreSplitAtWhatOneCommandMayTransfer) {
  for (const uint32_t lba : {512u, 4096u}) {
    EmulatedNvme kind = kFdpSsd;
    kind.lba_bytes = lba;
    kind.mdts = 1;
    log_.io.clear();
    const auto ssd = device(kind);
    EXPECT_EQ(ssd->info().capacity_blocks, kBlocks);
    ASSERT_TRUE(put(*ssd, 7, 5, 9, 1).ok());
    const auto writes = sent(nvme::opcode::kWrite);
    ASSERT_EQ(writes.size(), 3u);
    const uint64_t scale = kBlockSize / lba;
    EXPECT_EQ(writes[0].first_lba, 7 * scale);
    EXPECT_EQ(writes[0].lbas, 2 * scale);
    EXPECT_EQ(writes[2].first_lba, 11 * scale);
    EXPECT_EQ(writes[2].lbas, scale);
    for (const nvme::Transfer& each : writes) EXPECT_EQ(each.specific, 1u);
    EXPECT_TRUE(holds(*ssd, 7, 5, 9));
    EXPECT_EQ(sent(nvme::opcode::kRead).size(), 3u);
    EXPECT_EQ(ssd->honoured().value(), std::optional(true));
  }
}

TEST_F(NvmeTest, TrimsAreAtMost256RangesOfWhatARangeCanHold) {
  constexpr uint64_t kMany = uint64_t{300} << 32;
  log_.after_admin =
      changed<nvme::NamespaceIdentity>(nvme::opcode::kIdentify, nvme::kCnsNamespace,
                                       [](nvme::NamespaceIdentity& id) { id.nsze = kMany + 5; });
  const auto ssd = device(kFdpSsd);
  std::vector<nvme::Range> ranges;
  std::vector<size_t> counts;
  log_.instead_io = [&](const Command& command, Bytes data) -> std::optional<Result<uint32_t>> {
    EXPECT_EQ(command.opcode, nvme::opcode::kDatasetManagement);
    const auto some = nvme::decode_ranges(data);
    EXPECT_EQ(command.cdw10() + 1, some.size());
    counts.push_back(some.size());
    ranges.insert(ranges.end(), some.begin(), some.end());
    return uint32_t{0};
  };
  ASSERT_TRUE(ssd->trim(BlockNo{5}, kMany).ok());
  EXPECT_EQ(counts, (std::vector<size_t>{256, 45}));
  uint64_t at = 5;
  for (const nvme::Range& range : ranges) {
    EXPECT_EQ(range.first_lba, at);
    at += range.lbas;
  }
  EXPECT_EQ(at, kMany + 5);
}

TEST_F(NvmeTest, OnlyAVolatileCacheIsFlushed) {
  {
    const auto ssd = device(kFdpSsd);
    EXPECT_TRUE(ssd->info().flush_is_free);
    ASSERT_TRUE(ssd->flush().ok());
    EXPECT_TRUE(sent(nvme::opcode::kFlush).empty());
  }
  controller_.reset();
  make_ssd(false);
  const auto ssd = device(kFdpSsd);
  EXPECT_FALSE(ssd->info().flush_is_free);
  ASSERT_TRUE(ssd->flush().ok());
  EXPECT_EQ(sent(nvme::opcode::kFlush).size(), 1u);
  EXPECT_EQ(ssd::observe_stats(directory_ + "/ssd")->flushes, 1u);
}

TEST_F(NvmeTest, FormatsThatWeCannotUseAreRefusedWithTheReason) {
  const auto refusal = [&](uint32_t lba, uint16_t metadata, uint8_t protection) {
    EmulatedNvme kind = kStreamsSsd;
    kind.lba_bytes = lba;
    kind.metadata_bytes = metadata;
    kind.protection = protection;
    const auto opened = open(kind);
    EXPECT_EQ(opened.error().code, EINVAL);
    return opened.error().context;
  };
  EXPECT_NE(refusal(512, 8, 0).find("formatted with 512 + 8 bytes a block"), std::string::npos);
  EXPECT_NE(refusal(4096, 8, 1).find("protection information (type 1)"), std::string::npos);
  EXPECT_NE(refusal(256, 0, 0).find("blocks of 256 bytes"), std::string::npos);
  log_.after_admin = changed<nvme::NamespaceIdentity>(nvme::opcode::kIdentify, nvme::kCnsNamespace,
                                                      [](nvme::NamespaceIdentity& id) { id = {}; });
  EXPECT_EQ(open(kStreamsSsd).error().code, EINVAL);  // an empty structure has no format either
  log_.after_admin =
      changed<nvme::NamespaceIdentity>(nvme::opcode::kIdentify, nvme::kCnsNamespace,
                                       [](nvme::NamespaceIdentity& id) { id.nsze = 0; });
  EXPECT_EQ(open(kStreamsSsd).error().code, ENXIO);
}

TEST_F(NvmeTest, WithoutPlacementEverythingGoesToOneStreamAndTheReasonIsKept) {
  const auto expect_one = [&](const EmulatedNvme& kind, const std::string& why) {
    const auto ssd = device(kind);
    EXPECT_EQ(ssd->info().pstream_count, 1u);
    EXPECT_EQ(ssd->placement(PStreamId{1}), Placement{});
    EXPECT_NE(ssd->found().why.find(why), std::string::npos) << ssd->found().why;
    EXPECT_EQ(ssd->info().why, ssd->found().why) << "what status shows";
    EXPECT_EQ(ssd->info().mechanism, "none");
    ASSERT_TRUE(put(*ssd, 0, 3, 1, 1).ok());
    EXPECT_TRUE(holds(*ssd, 0, 3, 1));
    EXPECT_EQ(ssd->honoured().value(), std::nullopt);
  };
  expect_one({.mechanism = Mechanism::kNone}, "");
  expect_one({.mechanism = Mechanism::kFdp, .fdp_enabled = false},
             "it is off in endurance group 1");
  expect_one({.mechanism = Mechanism::kStreams, .streams_of_others = 3},
             "all of its 3 streams are in use elsewhere");
  EXPECT_FALSE(streams_are_enabled(*controller_));
}

TEST_F(NvmeTest, SomeStreamsAreBetterThanNone) {
  const auto ssd = device({.mechanism = Mechanism::kStreams, .streams_of_others = 2});
  EXPECT_EQ(ssd->info().pstream_count, 2u);
}

TEST_F(NvmeTest, OpenForReadingChangesNothing) {
  (void)put(*device(kStreamsSsd), 0, 1, 7, 0);
  log_ = {};
  const auto ssd = device(kStreamsSsd, true);
  EXPECT_EQ(ssd->info().mechanism, "Streams");  // the device has them; they are not used
  EXPECT_TRUE(holds(*ssd, 0, 1, 7));
  EXPECT_EQ(put(*ssd, 0, 1, 1, 0).error().code, EROFS);
  EXPECT_EQ(ssd->trim(BlockNo{0}, 1).error().code, EROFS);
  EXPECT_TRUE(ssd->flush().ok());
  const auto sends = [](const Command& each) {
    return each.opcode == nvme::opcode::kDirectiveSend;
  };
  EXPECT_TRUE(std::ranges::none_of(log_.admin, sends));
}

TEST_F(NvmeTest, AWriteProtectedNamespaceIsForReading) {
  EmulatedNvme kind = kFdpSsd;
  kind.write_protected = true;
  EXPECT_EQ(open(kind).error().code, EROFS);
  EXPECT_TRUE(open(kind, true).ok());
}

TEST_F(NvmeTest, TheMediumsWritesComeFromTheBestSourceThereIs) {
  const auto require = [&](const EmulatedNvme& kind, nvme::WafSource source, int rounds,
                           bool is_known) {
    const auto ssd = device(kind);
    EXPECT_EQ(describe(*ssd)["medium"]["source"], nvme::name_of(source));
    for (int i = 0; i < rounds; ++i) ASSERT_TRUE(put(*ssd, 0, 3000, 1, 1).ok());
    const DeviceStats stats = ssd->stats().value();
    EXPECT_EQ(stats.nand_known, is_known) << nvme::name_of(source);
    EXPECT_FALSE(stats.inside_known);
    const uint64_t written = static_cast<uint64_t>(rounds) * 3000 * kBlockSize;
    EXPECT_EQ(stats.nand_bytes >= written, is_known) << stats.nand_bytes;
  };
  require(kFdpSsd, nvme::WafSource::kFdpStatistics, 1, true);
  require(kStreamsSsd, nvme::WafSource::kOcpLog, 1, false);  // 24 units of 512,000 bytes
  require(kStreamsSsd, nvme::WafSource::kOcpLog, 5, true);
  EmulatedNvme kind = kStreamsSsd;
  kind.ocp_log = false;
  require(kind, nvme::WafSource::kEnduranceGroupLog, 5, false);  // less than one of 10^9
  log_.instead_admin = [](const Command& command, Bytes) -> std::optional<Result<uint32_t>> {
    if (command.opcode == nvme::opcode::kGetLogPage) return Error{EACCES, "not for you"};
    return std::nullopt;
  };
  const auto ssd = device(kFdpSsd);
  EXPECT_EQ(describe(*ssd)["medium"]["source"], nvme::name_of(nvme::WafSource::kNone));
  EXPECT_FALSE(ssd->stats()->nand_known);
  EXPECT_EQ(ssd->info().pstream_count, 4u);  // which needs no log page
}

TEST_F(NvmeTest, ADescriptionSaysWhatThereIsAndAProbeWhatIsHonoured) {
  {
    const auto ssd = device(kFdpSsd);
    ASSERT_TRUE(put(*ssd, kBlocks - 1, 1, 77, 0).ok());
    const nlohmann::json before = describe(*ssd);
    EXPECT_EQ(before["firmware"], "1");
    EXPECT_EQ(before["namespace"], 1);
    EXPECT_TRUE(before["topology"].is_null());  // which the kernel knows of its own devices only
    EXPECT_EQ(before["transport"], "an emulated controller");
    EXPECT_EQ(before["placement"]["mechanism"], "FDP");
    EXPECT_EQ(before["placement"]["identifiers"], (std::vector<int>{0, 1, 2, 3}));
    EXPECT_TRUE(before["placement"]["honoured"].is_null());
    EXPECT_TRUE(before["streams"].is_null());
    EXPECT_EQ(before["fdp"]["reclaim_unit_bytes"], 32 * kBlockSize);
    EXPECT_EQ(before["fdp"]["handles"][3]["writable_bytes"], 32 * kBlockSize);
    EXPECT_EQ(before["limits"]["transfer_bytes"], 128 * 1024);
    EXPECT_EQ(before["medium"]["source"], "FDP statistics");
    EXPECT_EQ(before["medium"]["waf"], 1.0);
    ASSERT_TRUE(probe_placement(*ssd).ok());
    const nlohmann::json after = describe(*ssd);
    EXPECT_EQ(after["placement"]["honoured"], true);
    EXPECT_EQ(after["fdp"]["handles"][3]["writable_bytes"], 31 * kBlockSize);
    EXPECT_TRUE(holds(*ssd, kBlocks - 1, 1, 77));
  }
  {
    const auto ssd = device(kStreamsSsd);
    ASSERT_TRUE(probe_placement(*ssd).ok());
    const nlohmann::json streams = describe(*ssd);
    EXPECT_EQ(streams["placement"]["honoured"], true);
    EXPECT_EQ(streams["streams"]["allocated"], 3);
    EXPECT_EQ(streams["streams"]["open"], 3);  // by the probe
    EXPECT_EQ(streams["streams"]["granularity_bytes"], 32 * kBlockSize);
    EXPECT_TRUE(streams["fdp"].is_null());
    EXPECT_TRUE(streams["medium"]["waf"].is_null());  // of so few of its units it says nothing
    ASSERT_TRUE(put(*ssd, 0, kBlocks, 1, 1).ok());
    ASSERT_TRUE(put(*ssd, 0, kBlocks, 1, 1).ok());
    EXPECT_TRUE(describe(*ssd)["medium"]["waf"].is_null());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(put(*ssd, 0, kBlocks, 1, 1).ok());
    EXPECT_NEAR(describe(*ssd)["medium"]["waf"].get<double>(), 1.0, 0.02);
  }
  log_.after_io = [](const Command& command, Bytes data) {  // handles that do not move
    if (command.opcode != nvme::opcode::kIoManagementReceive) return;
    for (size_t at = 16; at < data.size(); at += 32) data[at + 8] = std::byte{1};
  };
  const auto deaf = device(kFdpSsd);
  ASSERT_TRUE(probe_placement(*deaf).ok());
  EXPECT_EQ(describe(*deaf)["placement"]["honoured"], false);
}

TEST_F(NvmeTest, TheNameIsTheNamespacesOwn) {
  const std::string identity = device(kStreamsSsd)->info().identity;
  EXPECT_EQ(identity.size(), std::string("nvme:").size() + 32);
  log_.after_admin = changed<nvme::NamespaceIdentity>(nvme::opcode::kIdentify, nvme::kCnsNamespace,
                                                      [](nvme::NamespaceIdentity& id) {
                                                        id.nguid = {};
                                                        id.eui64 = {1, 2, 3, 4, 5, 6, 7, 8};
                                                      });
  EXPECT_EQ(device(kStreamsSsd)->info().identity, "nvme:0102030405060708");
  log_.after_admin =
      changed<nvme::NamespaceIdentity>(nvme::opcode::kIdentify, nvme::kCnsNamespace,
                                       [](nvme::NamespaceIdentity& id) { id.nguid = {}; });
  const std::string by_serial = device(kStreamsSsd)->info().identity;
  EXPECT_TRUE(by_serial.starts_with("nvme:") && by_serial.ends_with(":1")) << by_serial;
}

TEST_F(NvmeTest, AnotherFormatOrNamespaceIsNotedAndALargerOneIsTheSame) {
  using Space = nvme::NamespaceIdentity;
  const auto ssd = device(kFdpSsd);
  const auto when = [&](void (*change)(Space&)) {
    log_.after_admin = changed<Space>(nvme::opcode::kIdentify, nvme::kCnsNamespace, change);
    const auto done = ssd->check_same();
    return done.ok() ? 0 : done.error().code;
  };
  EXPECT_EQ(when([](Space&) {}), 0);
  EXPECT_EQ(when([](Space& id) { id.nsze *= 2; }), 0);
  EXPECT_EQ(when([](Space& id) { id.nsze /= 2; }), EMEDIUMTYPE);
  EXPECT_EQ(when([](Space& id) { id.lbaf.at(id.format()) ^= 3U << 16; }), EMEDIUMTYPE);
  EXPECT_EQ(when([](Space& id) { id.lbaf.at(id.format()) |= 8; }), EMEDIUMTYPE);
  EXPECT_EQ(when([](Space& id) { id.dps = 1; }), EMEDIUMTYPE);
  EXPECT_EQ(when([](Space& id) { id.nguid[0] ^= 1; }), EMEDIUMTYPE);
  EXPECT_EQ(when([](Space& id) { id.eui64[0] ^= 1; }), EMEDIUMTYPE);
  log_.instead_admin = [](const auto&, Bytes) { return Result<uint32_t>(Error{ENOLINK, "reset"}); };
  EXPECT_TRUE(ssd->check_same().ok()) << "who does not answer says nothing";
  log_.instead_admin = {};
}

TEST_F(NvmeTest, OnlyKnownSpellingsOfEmulatedControllersAreTaken) {
  for (const char* data : {"nvme:", "nvme:fdp", "nvme:zns:/tmp/x", "nvme:/dev/ng0n1"})
    EXPECT_EQ(open_device(data, {}).error().code, EINVAL) << data;
  EXPECT_EQ(path_of("nvme:zns:/tmp/x"), "/tmp/x");
  EXPECT_EQ(path_of("nvme:/tmp/x"), "/tmp/x");
  EXPECT_EQ(path_of("emu:/tmp/x:y"), "/tmp/x:y");
  EXPECT_EQ(path_of("/tmp/x:y"), "/tmp/x:y");
  EXPECT_EQ(open_device("nvme:fdp:" + directory_ + "/none", {}).error().code, ENOENT);
}

TEST_F(NvmeTest, AnotherDeviceUnderTheNameOfANamespaceIsRefused) {
  const std::string path = directory_ + "/ng0n1";
  std::ofstream(path) << std::string(kBlockSize, 'x');
  EXPECT_EQ(open_device(path, {}).value()->info().kind, "file");  // a name makes no device
  std::filesystem::remove(path);
  if (mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0)
    GTEST_SKIP() << "making a device node takes root";
  const auto opened = open_device(path, {});
  EXPECT_EQ(opened.error().code, ENOTBLK) << opened.error().message();
  EXPECT_NE(opened.error().context.find("no NVMe namespace"), std::string::npos);
}

}  // namespace
}  // namespace streamfs::blockdev
