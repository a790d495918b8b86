// Structures byte by byte; and against libnvme's, which others wrote from the same documents.
#include "fuse-fs/nvme/structures.h"

#include <gtest/gtest.h>
#include <libnvme.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/status.h"
#include "tests/unit/nvme/bytes.h"

namespace streamfs::nvme {
namespace {

// The bytes as libnvme reads them.
template <typename T>
T as(const std::vector<std::byte>& bytes) {
  EXPECT_GE(bytes.size(), sizeof(T));
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// Base 2.0, Identify Controller data structure.
TEST(Structures, TheControllerTellsItsLimitsAndFeatures) {
  nvme_id_ctrl theirs{};
  std::memcpy(theirs.sn, "S1            ", 14);
  std::memcpy(theirs.mn, "A model   ", 10);
  std::memcpy(theirs.fr, "1.2b    ", 8);
  theirs.mdts = 5;
  theirs.ver = 0x20000;
  theirs.ctratt = 1 << 19 | 1 << 4;
  theirs.oacs = 1 << 5;
  theirs.oncs = 1 << 2;
  theirs.vwc = 7;
  const auto ours = decode<ControllerIdentity>(bytes_of(theirs));
  EXPECT_EQ(text_of(ours.serial), "S1");
  EXPECT_EQ(text_of(ours.model), "A model");
  EXPECT_EQ(text_of(ours.firmware), "1.2b");
  EXPECT_EQ(ours.max_transfer_bytes(), 128u * 1024);
  EXPECT_TRUE(ours.has_fdp() && ours.has_directives() && ours.can_deallocate());
  EXPECT_TRUE(ours.has_volatile_cache());
  const std::vector<std::byte> again = encode(ours);
  EXPECT_EQ(again, bytes_of(theirs));
  EXPECT_EQ(hex(again, 77, 1), "05");
  EXPECT_EQ(hex(again, 96, 4), "10 00 08 00");
  EXPECT_EQ(hex(again, 256, 2), "20 00");
  const auto none = decode<ControllerIdentity>(std::vector<std::byte>(kIdentifyBytes));
  EXPECT_FALSE(none.has_fdp() || none.has_directives() || none.can_deallocate());
  EXPECT_FALSE(none.has_volatile_cache());
  EXPECT_EQ(none.max_transfer_bytes(), std::numeric_limits<uint64_t>::max());
}

// NVM Command Set 1.0, Identify Namespace data structure.
TEST(Structures, TheNamespaceTellsItsFormatAndGranularities) {
  nvme_id_ns theirs{};
  theirs.nsze = 1'000'000;
  theirs.ncap = 999'999;
  theirs.nuse = 17;
  theirs.nsfeat = 1 << 4;
  theirs.nlbaf = 3;
  theirs.flbas = 2;
  theirs.dps = 0x0b;  // type 3, in the first eight bytes
  theirs.dlfeat = 1;
  theirs.npwg = 1;
  theirs.npwa = 2;
  theirs.npdg = 3;
  theirs.npda = 4;
  theirs.nows = 5;
  theirs.nsattr = 1;
  theirs.endgid = 0x0102;
  theirs.nguid[15] = 0x77;
  theirs.eui64[0] = 0x66;
  theirs.lbaf[0].ds = 9;
  theirs.lbaf[2].ds = 12;
  theirs.lbaf[2].ms = 64;
  const auto ours = decode<NamespaceIdentity>(bytes_of(theirs));
  EXPECT_EQ(ours.nsze, 1'000'000u);
  EXPECT_EQ(ours.ncap, 999'999u);
  EXPECT_EQ(ours.nuse, 17u);
  EXPECT_EQ(ours.lba_bytes(), 4096u);
  EXPECT_EQ(ours.metadata_bytes(), 64u);
  EXPECT_EQ(ours.protection(), 3u);
  EXPECT_TRUE(ours.write_protected() && ours.has_granularities());
  EXPECT_EQ(ours.npwg + 10 * ours.npwa + 100 * ours.npdg + 1000 * ours.npda + 10000 * ours.nows,
            54321);
  EXPECT_EQ(ours.endgid, 0x0102u);
  const std::vector<std::byte> again = encode(ours);
  EXPECT_EQ(again, bytes_of(theirs));
  EXPECT_EQ(hex(again, 64, 10), "01 00 02 00 03 00 04 00 05 00");
  EXPECT_EQ(hex(again, 128, 12), "00 00 09 00 00 00 00 00 40 00 0c 00");
}

// The same: from 17 formats on, the index has two more bits, at 6:5.
TEST(Structures, MoreThanSixteenFormatsTakeMoreBits) {
  NamespaceIdentity identity;
  identity.flbas = 0x61;
  identity.lbaf[1] = 9 << 16;
  identity.lbaf[0x31] = 12 << 16;
  identity.nlbaf = 15;
  EXPECT_EQ(identity.lba_bytes(), 512u);
  identity.nlbaf = 16;
  EXPECT_EQ(identity.lba_bytes(), 4096u);
}

// NVM Command Set 1.0, I/O Command Set specific Identify Controller data structure.
TEST(Structures, TheCommandSetTellsItsLimits) {
  nvme_id_ctrl_nvm theirs{};
  theirs.dmrl = 0x12;
  theirs.dmrsl = 0x3456789a;
  theirs.dmsl = 0x1122334455667788;
  const auto ours = decode<CommandSetLimits>(bytes_of(theirs));
  EXPECT_EQ(ours.dmrl, 0x12);
  EXPECT_EQ(ours.dmrsl, 0x3456789au);
  EXPECT_EQ(ours.dmsl, 0x1122334455667788u);
  EXPECT_EQ(encode(ours), bytes_of(theirs));
}

// Base 2.0, Directives: Identify, Return Parameters; Streams, Return Parameters and Get Status.
TEST(Structures, DirectivesTellWhatThereIsAndWhatIsOpen) {
  std::vector<std::byte> bytes(DirectiveParameters::kBytes);
  bytes[0] = std::byte{0x07};
  bytes[32] = std::byte{0x05};
  const auto directives = decode<DirectiveParameters>(bytes);
  EXPECT_TRUE(directives.supports(1) && directives.supports(2));
  EXPECT_EQ(directives.enabled, 5);
  EXPECT_EQ(encode(directives), bytes);

  const StreamsParameters streams{16, 12, 3, 1, 8, 0x300, 4, 2};
  EXPECT_EQ(hex(encode(streams)),
            "10 00 0c 00 03 00 01 00 00 00 00 00 00 00 00 00 "
            "08 00 00 00 00 03 04 00 02 00 00 00 00 00 00 00");
  const auto theirs = as<nvme_streams_directive_params>(encode(streams));
  EXPECT_EQ(theirs.sws, 8u);
  EXPECT_EQ(theirs.sgs, 0x300);
  EXPECT_EQ(theirs.nsa, 4);
  EXPECT_EQ(decode<StreamsParameters>(encode(streams)).nso, 2u);

  const std::vector<uint16_t> open = {1, 0x203};
  EXPECT_EQ(hex(encode_stream_status(open)), "02 00 01 00 03 02");
  EXPECT_EQ(decode_stream_status(encode_stream_status(open)).value(), open);
}

// TP4146: FDP Configurations (20h), FDP Statistics (22h).
TEST(Structures, FdpLogPages) {
  const FdpConfiguration one{0x92, 2, 7, 128, 0x40000000, 600, {1, 2, 2}};
  const std::vector<std::byte> page = encode_fdp_configurations(std::vector{one, one});
  EXPECT_EQ(hex(page, 0, 16), "01 00 00 00 b0 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(hex(page, 16, 28),
            "50 00 92 00 02 00 00 00 03 00 07 00 80 00 00 00 00 00 00 40 00 00 00 00 58 02 00 00");
  EXPECT_EQ(hex(page, 16 + 64, 12), "01 00 00 00 02 00 00 00 02 00 00 00");
  const auto all = decode_fdp_configurations(page).value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[1].valid());
  EXPECT_EQ(all[1].reclaim_groups, 2u);
  EXPECT_EQ(all[1].max_placements, 7u);
  EXPECT_EQ(all[1].namespaces, 128u);
  EXPECT_EQ(all[1].reclaim_unit_bytes, 0x40000000u);
  EXPECT_EQ(all[1].time_limit_s, 600u);
  EXPECT_EQ(all[1].types, one.types);
  const auto theirs = as<nvme_fdp_config_desc>({page.begin() + 16, page.end()});
  EXPECT_EQ(theirs.runs, 0x40000000u);
  EXPECT_EQ(theirs.nruh, 3);

  const std::vector<std::byte> statistics = encode(FdpStatistics{{0x1122}, {0x3344}, {0x55}});
  EXPECT_EQ(hex(statistics, 0, 2), "22 11");
  EXPECT_EQ(hex(statistics, 16, 2), "44 33");
  EXPECT_EQ(hex(statistics, 32, 2), "55 00");
  EXPECT_EQ(decode<FdpStatistics>(statistics).media_written.value, 0x3344u);
}

// TP4146: Reclaim Unit Handle Status; Update takes a list of placement identifiers.
TEST(Structures, HandleStatusGivesThePlacementIdentifierToWriteWith) {
  const std::vector<RuhStatus> all = {{7, 1, 600, 0x12345}, {0x107, 2, 0, 8}};
  const std::vector<std::byte> bytes = encode_ruh_status(all);
  EXPECT_EQ(hex(bytes, 0, 32),
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 00 "
            "07 00 01 00 58 02 00 00 45 23 01 00 00 00 00 00");
  EXPECT_EQ(hex(bytes, 48, 4), "07 01 02 00");
  EXPECT_EQ(decode_ruh_status(bytes)->known, all);
  const auto part = decode_ruh_status(ConstBytes(bytes).first(48)).value();
  EXPECT_EQ(part.count, 2u);
  EXPECT_EQ(part.known.size(), 1u);

  const std::vector<uint16_t> placements = {0x107, 7};
  EXPECT_EQ(hex(encode_placements(placements)), "07 01 07 00");
  EXPECT_EQ(decode_placements(encode_placements(placements)), placements);
}

// NVM Command Set 1.0, Dataset Management, Range Definition: attributes, length (from 1), first
// LBA.
TEST(Structures, RangesToDeallocate) {
  const std::vector<std::byte> bytes = encode_ranges(std::vector<Range>{{0x1000, 8}, {2, 1}});
  EXPECT_EQ(hex(bytes),
            "00 00 00 00 08 00 00 00 00 10 00 00 00 00 00 00 "
            "00 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00");
  EXPECT_EQ(decode_ranges(bytes).at(1).first_lba, 2u);
  EXPECT_EQ(as<nvme_dsm_range>(bytes).nlb, 8u);
}

// Base 2.0: SMART / Health Information (02h), Endurance Group Information (09h). OCP 2.0: C0h.
TEST(Structures, HealthPagesTellWhatTheMediumWasWritten) {
  const SmartLog smart{1, 2, 3, 4, {5}, {0x0607}, {8}};
  const auto theirs = as<nvme_smart_log>(encode(smart));
  EXPECT_EQ(theirs.avail_spare, 2);
  EXPECT_EQ(theirs.spare_thresh, 3);
  EXPECT_EQ(theirs.percent_used, 4);
  EXPECT_EQ(theirs.data_units_read[0], 5);
  EXPECT_EQ(theirs.data_units_written[1], 6);
  EXPECT_EQ(theirs.media_errors[0], 8);
  nvme_endurance_group_log group{};
  group.data_units_written[0] = 9;
  group.media_units_written[0] = 10;
  EXPECT_EQ(decode<EnduranceGroupLog>(bytes_of(group)).data_units_written.value, 9u);
  EXPECT_EQ(decode<EnduranceGroupLog>(bytes_of(group)).media_units_written.value, 10u);

  std::vector<std::byte> page(512);
  page[1] = std::byte{1};
  EXPECT_FALSE(decode<OcpSmartLog>(page).is_ocp());
  const char* guid = "\xc5\xaf\x10\x28\xea\xbf\xf2\xa4\x9c\x4f\x6f\x7c\xc9\x14\xd5\xaf";
  std::memcpy(page.data() + 496, guid, 16);
  EXPECT_TRUE(decode<OcpSmartLog>(page).is_ocp());
  EXPECT_EQ(decode<OcpSmartLog>(page).physical_written.value, 256u);
}

TEST(Structures, ACounterPastSixtyFourBitsIsTheLargestNumber) {
  std::vector<std::byte> bytes(FdpStatistics::kBytes);
  bytes[0] = bytes[8] = std::byte{1};
  bytes[31] = std::byte{0};
  EXPECT_EQ(decode<FdpStatistics>(bytes).host_written.value, UINT64_MAX);
  EXPECT_EQ(decode<FdpStatistics>(bytes).media_written.value, 0u);
}

// Every prefix of a good page, and counts that claim more than there is.
TEST(Structures, LengthsThatCannotBeAreEio) {
  const std::vector<std::byte> page =
      encode_fdp_configurations(std::vector<FdpConfiguration>{{0x80, 1, 1, 1, 1, 0, {1, 1}}});
  for (size_t size = 0; size < page.size(); ++size) {
    const auto cut = decode_fdp_configurations(ConstBytes(page).first(size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.error().code, EIO);
  }
  std::vector<std::byte> small = page;
  small[16] = std::byte{64};  // a descriptor too short for its handles
  EXPECT_EQ(decode_fdp_configurations(small).error().code, EIO);
  small[16] = std::byte{0};
  EXPECT_EQ(decode_fdp_configurations(small).error().code, EIO);

  std::vector<std::byte> claims(64 + 64, std::byte{0});
  claims[0] = std::byte{64};
  EXPECT_EQ(decode_stream_status(claims)->size(), 63u);  // 64, of which there was room for fewer
  EXPECT_EQ(decode_stream_status({}).error().code, EIO);
  EXPECT_EQ(decode_ruh_status(ConstBytes(claims).first(15)).error().code, EIO);
}

// Base 2.0, Status Field Definition.
TEST(Statuses, BecomeAnErrnoAndASentence) {
  const Error refused = error_of(0x4002, "enable Streams");
  EXPECT_EQ(refused.code, EINVAL);
  EXPECT_EQ(refused.context,
            "enable Streams: NVMe status 0h/02h, the controller refuses a field of this command "
            "(not worth repeating)");
  EXPECT_EQ(error_of(0x0281, "read").code, EIO);
  EXPECT_EQ(error_of(0x0020, "write").code, EROFS);
  EXPECT_EQ(error_of(0x017f, "allocate").code, ENOSPC);
  EXPECT_EQ(error_of(0x0029, "RUH status").code, EOPNOTSUPP);
  EXPECT_EQ(error_of(0x0109, "log").code, EOPNOTSUPP);
  EXPECT_EQ(error_of(0x07fe, "x").code, EIO);
  EXPECT_EQ(error_of(0x07fe, "x").context, "x: NVMe status 7h/feh");
  for (const uint16_t passing : std::initializer_list<uint16_t>{
           0x0004, 0x0006, 0x0007, 0x0008, 0x0021, 0x0022, 0x0082, 0x0370, 0x0371}) {
    EXPECT_EQ(error_of(passing, "x").code, passing < 0x0300 ? EAGAIN : ENOLINK) << passing;
    EXPECT_EQ(error_of(static_cast<uint16_t>(passing | 0x4000), "x").code, EIO)
        << passing;  // do not retry
  }
  EXPECT_EQ(outcome({0, 42}, "x").value(), 42u);
  EXPECT_EQ(outcome({0x3800, 42}, "x").value(), 42u);  // only how to repeat what did not fail
  EXPECT_EQ(outcome({0x0280, 42}, "x").error().code, EIO);
}

// Only the status that refuses a write's stream is EINVAL.
TEST(Statuses, OnlyInvalidFieldIsEinval) {
  for (uint16_t status = 1; status < 0x0800; ++status)
    EXPECT_EQ(error_of(status, "x").code == EINVAL, status == 0x0002) << status;
}

}  // namespace
}  // namespace streamfs::nvme
