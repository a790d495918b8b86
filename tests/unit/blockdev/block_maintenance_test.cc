// eMMC cards and UFS devices in idle time: the bytes that are sent, and a card and a folder of /sys
// that answer as the documents say. No such device has taken part.
#include "fuse-fs/blockdev/block_maintenance.h"

#include <gtest/gtest.h>
#include <linux/mmc/ioctl.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fuse-fs/blockdev/discard.h"
#include "fuse-fs/blockdev/emmc_maintenance.h"
#include "fuse-fs/blockdev/identity.h"
#include "fuse-fs/blockdev/mmc_command.h"
#include "fuse-fs/blockdev/ufs_maintenance.h"

namespace streamfs::blockdev {
namespace {

using Words = std::array<uint32_t, sizeof(mmc_ioc_cmd) / 4>;

// As the kernel sees it: write_flag, is_acmd, opcode, arg, 4 of an answer, flags, blksz, blocks,
// four of times, padding, and the address in two words.
Words words_of(const mmc_ioc_cmd& command) {
  Words words{};
  std::memcpy(words.data(), &command, sizeof command);
  return words;
}

TEST(MmcCommand, BackgroundOperationsAreStartedByASwitchOfByte164) {
  EXPECT_EQ(words_of(mmc::start_background_operations()),
            (Words{1, 0, 6, 0x03A40100, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(MmcCommand, AnInterruptIsCommand12Or13WithItsBitAndTheCardsAddress) {
  EXPECT_EQ(words_of(mmc::interrupt(mmc::Hpi::kByStop, 0x0012)),
            (Words{0, 0, 12, 0x00120001, 0, 0, 0, 0, 0x49D, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(words_of(mmc::interrupt(mmc::Hpi::kByStatus, 1)),
            (Words{0, 0, 13, 0x00010001, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(words_of(mmc::read_status(1)),
            (Words{0, 0, 13, 0x00010000, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(MmcCommand, ExtCsdIsReadAsOneBlockOf512Bytes) {
  mmc::ExtCsd bytes{};
  const mmc_ioc_cmd command = mmc::read_ext_csd(bytes);
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  EXPECT_EQ(words_of(command),
            (Words{0, 0, 8, 0, 0, 0, 0, 0, 0xB5, 512, 1, 0, 0, 0, 0, 0,
                   static_cast<uint32_t>(address), static_cast<uint32_t>(address >> 32)}));
}

TEST(MmcCommand, WhatExtCsdSaysIsReadFromItsBytes) {
  mmc::ExtCsd bytes{};
  EXPECT_FALSE(mmc::background_operations(bytes).supported);
  bytes[502] = 1;
  bytes[163] = 3;
  bytes[246] = 0xFE;
  bytes[198] = 5;
  bytes[503] = 1;
  mmc::BackgroundOperations found = mmc::background_operations(bytes);
  EXPECT_TRUE(found.supported && found.manual && found.automatic);
  EXPECT_EQ(found.status, 2);
  EXPECT_EQ(found.hpi_ms, 50u);
  EXPECT_EQ(found.hpi, mmc::Hpi::kNone) << "there, but not enabled";
  bytes[161] = 1;
  EXPECT_EQ(mmc::background_operations(bytes).hpi, mmc::Hpi::kByStatus);
  bytes[503] = 3;
  EXPECT_EQ(mmc::background_operations(bytes).hpi, mmc::Hpi::kByStop);
}

TEST(MmcCommand, ACardIsReadyInTransferStateAndReadyForData) {
  mmc_ioc_cmd answered{};
  answered.response[0] = 0x900;
  EXPECT_TRUE(mmc::is_ready(answered));
  for (const uint32_t status : {0xE00u, 0x800u, 0xF00u, 0u}) {
    answered.response[0] = status;
    EXPECT_FALSE(mmc::is_ready(answered)) << status;
  }
}

// A card: what it was sent, and whether it is busy.
struct Card {
  mmc::ExtCsd bytes{};
  std::vector<uint32_t> sent;  // opcode << 1 | HPI bit
  std::atomic<bool> busy{false};
  int busy_looks = -1;  // ends by itself after so many
  int fails = 0;        // errno of a start
  bool deaf = false;    // goes on after an interrupt

  Card() {
    bytes[502] = bytes[163] = bytes[161] = 1;
    bytes[503] = 1;
    bytes[246] = 2;
    bytes[198] = 1;
  }
  int answer(mmc_ioc_cmd& command) {
    const bool hpi = command.opcode != 8 && command.opcode != 6 && (command.arg & 1) != 0;
    sent.push_back(command.opcode << 1 | uint32_t{hpi});
    if (command.opcode == 8) {
      if (busy) return EIO;
      auto* into = reinterpret_cast<std::byte*>(static_cast<uintptr_t>(command.data_ptr));
      std::memcpy(into, bytes.data(), bytes.size());
    } else if (command.opcode == 6) {
      if (fails != 0) return fails;
      busy = true;
    } else {
      if (busy_looks > 0 && --busy_looks == 0) busy = false;
      if (hpi && !busy) return EINVAL;
      if (hpi && !deaf) busy = false;
      command.response[0] = busy ? 0xE00 : 0x900;
    }
    return 0;
  }
  std::unique_ptr<EmmcMaintenance> open() {
    auto made = EmmcMaintenance::open([this](mmc_ioc_cmd& command) { return answer(command); }, 1);
    sent.clear();
    return made;
  }
};

constexpr uint32_t kLook = 8 << 1, kStart = 6 << 1, kStatus = 13 << 1, kInterrupt = 13 << 1 | 1;

TEST(EmmcMaintenanceTest, ACardThatAsksIsStartedAndTheFirstRequestInterruptsIt) {
  Card card;
  const auto emmc = card.open();
  ASSERT_EQ(emmc->capabilities().means, IdleMeans::kByItself);
  EXPECT_EQ(emmc->pressure(), Pressure::kHigh);
  card.sent.clear();
  ASSERT_TRUE(emmc->begin().ok());
  EXPECT_EQ(card.sent, (std::vector<uint32_t>{kLook, kStart}));
  EXPECT_EQ(emmc->pressure(), Pressure::kHigh) << "a busy card is not asked";
  emmc->request_begins();
  EXPECT_FALSE(card.busy);
  emmc->request_ended();
  EXPECT_EQ(card.sent, (std::vector<uint32_t>{kLook, kStart, kStatus, kInterrupt, kStatus}));
  ASSERT_TRUE(emmc->end().ok());
  emmc->request_begins();
  EXPECT_EQ(card.sent.size(), 5u) << "nothing more to interrupt";
}

TEST(EmmcMaintenanceTest, ACardThatDoesNotAskOrHasARequestOnItsWayIsNotStarted) {
  Card card;
  const auto emmc = card.open();
  card.bytes[246] = 1;
  ASSERT_TRUE(emmc->begin().ok());
  EXPECT_EQ(card.sent, std::vector<uint32_t>{kLook});
  card.bytes[246] = 3;
  emmc->request_begins();
  ASSERT_TRUE(emmc->begin().ok());
  EXPECT_FALSE(card.busy);
  emmc->request_ended();
  ASSERT_TRUE(emmc->begin().ok());
  EXPECT_TRUE(card.busy);
}

TEST(EmmcMaintenanceTest, OneThatEndedByItselfIsNotInterrupted) {
  Card card;
  const auto emmc = card.open();
  ASSERT_TRUE(emmc->begin().ok());
  card.busy = false;
  ASSERT_TRUE(emmc->end().ok());
  EXPECT_EQ(card.sent, (std::vector<uint32_t>{kLook, kStart, kStatus}));
}

TEST(EmmcMaintenanceTest, WhatCannotBeInterruptedOrIsNotAllowedIsLeftAlone) {
  const std::pair<size_t, uint8_t> changes[] = {{502, 0}, {163, 0}, {163, 3}, {161, 0}, {503, 0}};
  for (const auto& [byte, value] : changes) {
    Card card;
    card.bytes[byte] = value;
    const auto emmc = card.open();
    EXPECT_EQ(emmc->capabilities().means, IdleMeans::kNone) << byte;
    EXPECT_NE(emmc->capabilities().how, "") << byte;
    EXPECT_TRUE(emmc->begin().ok());
    EXPECT_TRUE(emmc->prepare_poweroff({}).ok());
    EXPECT_TRUE(card.sent.empty()) << byte;
  }
}

TEST(EmmcMaintenanceTest, NoCommandEverSetsTheBitThatCannotBeTakenBack) {
  Card card;
  card.bytes[163] = 0;
  const auto emmc = card.open();
  (void)emmc->begin();
  (void)emmc->prepare_poweroff({});
  EXPECT_EQ(std::ranges::count(card.sent, kStart), 0);
}

TEST(EmmcMaintenanceTest, BeforePowerOffItWorksToItsEndOrUntilTold) {
  Card card;
  card.bytes[246] = 1;
  const auto emmc = card.open();
  card.busy_looks = 4;
  EXPECT_TRUE(emmc->prepare_poweroff({})->finished);
  EXPECT_FALSE(card.busy);
  card.busy_looks = -1;
  EXPECT_FALSE(emmc->prepare_poweroff({.stop = [] { return true; }})->finished);
  EXPECT_FALSE(card.busy) << "interrupted";
}

TEST(EmmcMaintenanceTest, AFailureIsToldAndNoRequestWaitsForEver) {
  Card card;
  card.fails = EIO;
  const auto emmc = card.open();
  EXPECT_EQ(emmc->begin().error().code, EIO);
  card.fails = 0;
  card.deaf = true;
  ASSERT_TRUE(emmc->begin().ok());
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(emmc->end().error().code, ETIMEDOUT);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
}

TEST(EmmcMaintenanceTest, NoRequestIsUnderWayWhileTheCardIsBusy) {
  Card card;
  const auto emmc = card.open();
  std::atomic<bool> over{false};
  std::atomic<int> mistakes{0}, requests{0};
  std::thread host([&] {
    while (!over) {
      emmc->request_begins();
      if (card.busy) ++mistakes;
      emmc->request_ended();
      ++requests;
      std::this_thread::yield();
    }
  });
  int started = 0;
  while (started < 200 || requests < 200) {
    ASSERT_TRUE(emmc->begin().ok());
    started += card.busy ? 1 : 0;
    std::this_thread::yield();
    if (started % 2 == 0) {
      ASSERT_TRUE(emmc->end().ok());
    }
  }
  over = true;
  host.join();
  EXPECT_EQ(mistakes, 0);
}

class UfsMaintenanceTest : public ::testing::Test {
 protected:
  UfsMaintenanceTest() {
    std::string name = "/tmp/streamfs-ufs.XXXXXX";
    root_ = mkdtemp(name.data());
    set("attributes/bkops_status", "0x00000002");
    set("power/control", "on");
    std::filesystem::create_directories(disk());
  }
  ~UfsMaintenanceTest() override { std::filesystem::remove_all(root_); }
  std::filesystem::path at() const { return root_ / "devices/1d84000.ufs"; }
  std::filesystem::path disk() const { return at() / "host0/target0:0:0/0:0:0:0/block/sda"; }
  void set(const std::string& name, const std::string& value) {
    std::filesystem::create_directories((at() / name).parent_path());
    std::ofstream(at() / name) << value << "\n";
  }
  std::string get(const std::string& name) const {
    std::string word;
    std::ifstream(at() / name) >> word;
    return word;
  }
  std::filesystem::path root_;
};

TEST_F(UfsMaintenanceTest, TheControllerIsFoundAboveTheDisk) {
  EXPECT_EQ(UfsMaintenance::controller_above(disk()), at());
  EXPECT_FALSE(UfsMaintenance::controller_above("/sys/devices/virtual").has_value());
  EXPECT_NE(maintenance_of(-1, disk()), nullptr);
  EXPECT_EQ(maintenance_of(-1, root_), nullptr);
}

TEST_F(UfsMaintenanceTest, PowerManagementIsAllowedInIdleTimeAndPutBack) {
  {
    UfsMaintenance ufs(at());
    EXPECT_EQ(ufs.pressure(), Pressure::kHigh);
    ASSERT_TRUE(ufs.begin().ok());
    EXPECT_EQ(get("power/control"), "auto");
    ASSERT_TRUE(ufs.end().ok());
    EXPECT_EQ(get("power/control"), "on");
    ASSERT_TRUE(ufs.begin().ok());
  }
  EXPECT_EQ(get("power/control"), "on") << "also when it goes";
  set("power/control", "auto");
  UfsMaintenance ufs(at());
  ASSERT_TRUE(ufs.begin().ok());
  ASSERT_TRUE(ufs.end().ok());
  EXPECT_EQ(get("power/control"), "auto") << "as it was";
}

TEST_F(UfsMaintenanceTest, ADeviceThatWantsToIsDefragmentedUntilTheFirstRequest) {
  const std::pair<const char*, const char*> cases[] = {{"idle", "hid/analysis_trigger"},
                                                       {"defrag_required", "hid/defrag_trigger"},
                                                       {"defrag_not_required", ""}};
  for (const auto& [state, trigger] : cases) {
    set("hid/state", state);
    set("hid/analysis_trigger", "");
    set("hid/defrag_trigger", "");
    UfsMaintenance ufs(at());
    ASSERT_TRUE(ufs.begin().ok());
    for (const char* each : {"hid/analysis_trigger", "hid/defrag_trigger"})
      EXPECT_EQ(get(each), std::string(each) == trigger ? "enable" : "") << state;
    ASSERT_TRUE(ufs.end().ok());
    if (*trigger != '\0') {
      EXPECT_EQ(get(trigger), "disable");
    }
  }
}

TEST_F(UfsMaintenanceTest, WhatCannotBeReadIsUnknownAndWhatCannotBeWrittenIsAnError) {
  for (const char* odd : {"", "many", "0x4", "12 3"}) {
    set("attributes/bkops_status", odd);
    EXPECT_EQ(UfsMaintenance(at()).pressure(), Pressure::kUnknown) << odd;
  }
  set("hid/state", "idle");
  UfsMaintenance ufs(at());
  std::filesystem::create_directory(at() / "hid/analysis_trigger");
  EXPECT_EQ(ufs.begin().error().code, EIO);
  EXPECT_EQ(get("power/control"), "on");
}

TEST(DiscardTest, RangesAreCutInwardToWholeUnits) {
  const DiscardUnits units{65536, 4096};
  EXPECT_EQ(whole_units({4096, 65536}, units), (ByteRange{4096, 65536}));
  EXPECT_EQ(whole_units({0, 200000}, units), (ByteRange{4096, 131072}));
  EXPECT_EQ(whole_units({8192, 131072}, units), (ByteRange{69632, 65536}));
  EXPECT_EQ(whole_units({8192, 65536}, units).size, 0u);
  EXPECT_EQ(whole_units({0, 4096}, units).size, 0u);
  EXPECT_EQ(whole_units({12288, 8192}, {4096, 0}), (ByteRange{12288, 8192}));
}

TEST(DiscardTest, NoRangeIsCutOutwardAndNoWholeUnitIsLeftOut) {
  for (const uint64_t offset : {0u, 1u, 3u}) {
    for (uint64_t first = 0; first < 12; ++first) {
      for (uint64_t count = 0; count < 12; ++count) {
        const ByteRange cut = whole_units({first, count}, {4, offset});
        uint64_t units = 0;
        for (uint64_t at = offset; at < 40; at += 4)
          units += at >= first && at + 4 <= first + count ? 1 : 0;
        EXPECT_EQ(cut.size, units * 4) << offset << " " << first << " " << count;
        if (units == 0) continue;
        EXPECT_GE(cut.offset, first);
        EXPECT_EQ(cut.offset % 4, offset);
      }
    }
  }
}

TEST_F(UfsMaintenanceTest, UnitsOfADiscardAreWhatSysSays) {
  set("block/sdx/queue/discard_granularity", "65536");
  set("block/sdx/discard_alignment", "0");
  set("block/sdx/sdx1/partition", "1");
  set("block/sdx/sdx1/discard_alignment", "28672");
  EXPECT_EQ(discard_units(at() / "block/sdx").unit_bytes, 65536u);
  EXPECT_EQ(discard_units(at() / "block/sdx").offset_bytes, 0u);
  EXPECT_EQ(discard_units(at() / "block/sdx/sdx1").unit_bytes, 65536u);
  EXPECT_EQ(discard_units(at() / "block/sdx/sdx1").offset_bytes, 28672u);
  set("block/sdx/queue/discard_granularity", "512");
  EXPECT_EQ(discard_units(at() / "block/sdx").unit_bytes, 4096u) << "no whole blocks";
  EXPECT_EQ(discard_units(at()).unit_bytes, 4096u);
}

TEST_F(UfsMaintenanceTest, WhatWritesThroughSaysSoAndAPartitionIsAsItsDisk) {
  set("block/sdx/queue/write_cache", "write through");
  set("block/sdx/sdx1/partition", "1");
  EXPECT_TRUE(writes_through(at() / "block/sdx"));
  EXPECT_TRUE(writes_through(at() / "block/sdx/sdx1"));
  set("block/sdx/queue/write_cache", "write back");
  EXPECT_FALSE(writes_through(at() / "block/sdx"));
  EXPECT_FALSE(writes_through(at())) << "who says nothing may have a cache";
}

}  // namespace
}  // namespace streamfs::blockdev
