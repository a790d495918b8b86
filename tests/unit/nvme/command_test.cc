// Commands byte by byte, as the documents named in command.h draw them, and against the structure
// through which Linux is given them.
#include "fuse-fs/nvme/command.h"

#include <gtest/gtest.h>
#include <linux/nvme_ioctl.h>

#include <cstddef>
#include <ostream>
#include <span>
#include <string>

#include "fuse-fs/nvme/linux.h"
#include "tests/unit/nvme/bytes.h"

namespace streamfs::nvme {
namespace {

// Opcode and namespace, then CDW10 to CDW15; the rest of an entry is zero.
struct Entry {
  std::string head, dwords;
  friend bool operator==(const Entry&, const Entry&) = default;
  friend void PrintTo(const Entry& entry, std::ostream* to) {
    *to << entry.head << " | " << entry.dwords;
  }
};

// The structure begins as a submission queue entry does. Without data its pointers are zero.
Entry entry(const Command& command) {
  const nvme_uring_cmd kernel = ring_command(command, {});
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&kernel, 1));
  for (size_t i = 8; i < 40; ++i) EXPECT_EQ(bytes[i], std::byte{0}) << i;
  return {hex(bytes, 0, 8), hex(bytes, 40, 24)};
}

// Base 2.0, Identify: CNS in CDW10 7:0.
TEST(Commands, IdentifySaysOfWhat) {
  EXPECT_EQ(entry(identify(kCnsController, 0)),
            (Entry{"06 00 00 00 00 00 00 00",
                   "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(entry(identify(kCnsNamespace, 3)),
            (Entry{"06 00 00 00 03 00 00 00",
                   "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
}

// Base 2.0, Get Log Page: LID 7:0, NUMDL 31:16; NUMDU 15:0, LSI 31:16; LPOL; LPOU.
TEST(Commands, ALogPageIsAskedForInDwordsCountedFromZero) {
  EXPECT_EQ(entry(get_log_page({log_page::kFdpStatistics, 7, 0x1'0000'1000}, kAllNamespaces, 4096)),
            (Entry{"02 00 00 00 ff ff ff ff",
                   "22 00 ff 03 00 00 07 00 00 10 00 00 01 00 00 00 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(entry(get_log_page({log_page::kFdpConfigurations, 1, 0}, 0, 512 * 1024)),
            (Entry{"02 00 00 00 00 00 00 00",
                   "20 00 ff ff 01 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
}

// Base 2.0, Get Features: FID 7:0. TP4146, Flexible Data Placement (1Dh): ENDGID in CDW11 15:0.
TEST(Commands, FdpIsAFeatureOfAnEnduranceGroup) {
  EXPECT_EQ(entry(get_features(kFeatureFdp, 2)),
            (Entry{"0a 00 00 00 00 00 00 00",
                   "1d 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
}

// Base 2.0, Directive Send and Receive: NUMD in CDW10; DOPER 7:0, DTYPE 15:8, DSPEC 31:16 in CDW11.
// Directives, Identify, Enable: ENDIR 0 and DTYPE 15:8 in CDW12 (not at bit 1, as libnvme has it).
TEST(Commands, DirectivesSayOperationTypeAndIdentifier) {
  EXPECT_EQ(entry(directive_receive(1, directive::kIdentify, directive::kReturnParameters, 4096)),
            (Entry{"1a 00 00 00 01 00 00 00",
                   "ff 03 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(entry(enable_directive(1, directive::kStreams, true)),
            (Entry{"19 00 00 00 01 00 00 00",
                   "00 00 00 00 01 00 00 00 01 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(entry(enable_directive(1, directive::kStreams, false)).dwords,
            "00 00 00 00 01 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(entry(directive_receive(1, directive::kStreams, directive::kReturnParameters, 32)),
            (Entry{"1a 00 00 00 01 00 00 00",
                   "07 00 00 00 01 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(entry(directive_receive(1, directive::kStreams, directive::kGetStatus, 16)).dwords,
            "03 00 00 00 02 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(entry(allocate_streams(1, 8)),
            (Entry{"1a 00 00 00 01 00 00 00",
                   "00 00 00 00 03 01 00 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(entry(directive_send(1, directive::kStreams, directive::kReleaseId, 0x1234)),
            (Entry{"19 00 00 00 01 00 00 00",
                   "00 00 00 00 01 01 34 12 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(entry(directive_send(1, directive::kStreams, directive::kReleaseResources, 0)).dwords,
            "00 00 00 00 02 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
}

// NVM Command Set 1.0, Write: SLBA in CDW10 and 11; NLB 15:0, DTYPE 23:20, FUA 30 in CDW12; DSPEC
// 31:16 in CDW13. Read: the same without a directive.
TEST(Commands, AWriteNamesItsStreamOrPlacement) {
  const Transfer streams{0x1122334455667788, 256, directive::kStreams, 5};
  EXPECT_EQ(entry(write(1, streams)),
            (Entry{"01 00 00 00 01 00 00 00",
                   "88 77 66 55 44 33 22 11 ff 00 10 00 00 00 05 00 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(entry(write(1, {8, 65536, directive::kPlacement, 0xabcd, true})).dwords,
            "08 00 00 00 00 00 00 00 ff ff 20 40 00 00 cd ab 00 00 00 00 00 00 00 00");
  EXPECT_EQ(entry(read(1, streams)),
            (Entry{"02 00 00 00 01 00 00 00",
                   "88 77 66 55 44 33 22 11 ff 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
  const Transfer back = transfer_of(write(1, {77, 65536, directive::kPlacement, 9, true}));
  EXPECT_EQ(back.first_lba, 77u);
  EXPECT_EQ(back.lbas, 65536u);
  EXPECT_EQ(back.directive_type, directive::kPlacement);
  EXPECT_EQ(back.specific, 9u);
  EXPECT_TRUE(back.force_unit_access);
}

// NVM Command Set 1.0, Dataset Management: NR 7:0 from 0, AD bit 2 of CDW11. Base, Flush.
TEST(Commands, FlushAndDeallocate) {
  EXPECT_EQ(entry(flush(1)), (Entry{"00 00 00 00 01 00 00 00",
                                    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                                    "00 00 00 00"}));
  EXPECT_EQ(entry(deallocate(1, 256)),
            (Entry{"09 00 00 00 01 00 00 00",
                   "ff 00 00 00 04 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
}

// TP4146, I/O Management Receive: MO 7:0 in CDW10, NUMD in CDW11; Send: MO 7:0, NPID - 1 in 31:16.
TEST(Commands, ReclaimUnitHandlesAreIoCommands) {
  EXPECT_EQ(entry(ruh_status(1, 16 + 8 * 32)),
            (Entry{"12 00 00 00 01 00 00 00",
                   "01 00 00 00 43 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(entry(ruh_update(1, 3)),
            (Entry{"1d 00 00 00 01 00 00 00",
                   "01 00 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"}));
}

}  // namespace
}  // namespace streamfs::nvme
