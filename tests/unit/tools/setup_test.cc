// The proposal of streamctl setup for machines of several kinds. A machine is a table of the files
// that its /sys, /proc and /dev have, and another of the answers that its devices give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <ios>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/setup_machine.h"
#include "fuse-fs/tools/setup_output.h"
#include "fuse-fs/tools/setup_proposal.h"
#include "pmem/region.h"

namespace streamfs::tools {
namespace {

using pmem::MetaClass;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A path and its content; a content that begins with "->" is a link's target.
using Files = std::vector<std::pair<std::string, std::string>>;

Files operator+(Files one, const Files& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

Files nvme(const std::string& controller, const std::string& sectors = "2000000000") {
  const std::string disk = "sys/block/nvme" + controller + "n1/";
  const std::string generic = "ng" + controller + "n1";
  return {{disk + "size", sectors},
          {disk + "dev", "259:" + controller},
          {disk + "queue/rotational", "0"},
          {disk + "device/model", "Model " + controller + "   "},
          {"sys/class/nvme-generic/" + generic + "/dev", "240:" + controller},
          {"dev/disk/by-id/nvme-eui.00" + controller, "->../../nvme" + controller + "n1"},
          {"dev/disk/by-id/nvme-ssd_S" + controller, "->../../nvme" + controller + "n1"},
          {"dev/disk/by-id/nvme-generic-ssd_S" + controller, "->../../" + generic}};
}

// The file system that the machine runs from, on a disk with one partition.
Files root_on(const std::string& disk, const std::string& partition) {
  const std::string folder = "sys/devices/" + disk + "/" + partition;
  return {{"sys/block/" + disk + "/" + partition + "/partition", "1"},
          {"sys/block/" + disk + "/" + partition + "/size", "1000000"},
          {"sys/block/" + disk + "/" + partition + "/dev", "8:1"},
          {"sys/block/" + disk + "/size", "3000000000"},
          {folder + "/partition", "1"},
          {"sys/dev/block/8:1", "->../../devices/" + disk + "/" + partition},
          {"proc/self/mountinfo",
           "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/" + partition + " rw,errors=panic"}};
}

const Files kPrograms = {
    {"usr/bin/ndctl", ""}, {"usr/bin/classifierd", ""}, {"run/systemd/system/.keep", ""}};
const Files kBase = kPrograms + root_on("sda", "sda1");

// A namespace on a bus of this provider. `domain` is empty where a region has no such attribute.
Files memory(const std::string& provider, const std::string& mode, const std::string& domain = "",
             const std::string& number = "0") {
  const std::string region = "sys/devices/bus/ndbus0/region" + number + "/";
  const std::string name = "namespace" + number + ".0";
  Files files = {
      {"sys/devices/bus/ndbus0/provider", provider},
      {region + name + "/size", "1073741824"},
      {region + name + "/mode", mode},
      {"sys/bus/nd/devices/" + name, "->../../../devices/bus/ndbus0/region" + number + "/" + name}};
  if (!domain.empty()) files.emplace_back(region + "persistence_domain", domain);
  if (mode != "dax")
    return files + Files{{region + name + "/block/pmem" + number + "/dev", "259:5" + number}};
  const std::string dax = "dax" + number + ".0";
  return files + Files{{region + name + "/holder", dax},
                       {region + dax + "/" + dax + "/size", "1040187392"},
                       {"sys/bus/dax/devices/" + dax + "/size", "1040187392"}};
}

const DeviceAnswer kFdp{1ULL << 40, 8, "FDP", true, {}};
const DeviceAnswer kStreams{1ULL << 40, 4, "NVMe Streams", false, {}};
const DeviceAnswer kPlain{1ULL << 40, 1, "none", false, {}};
const DeviceAnswer kBlank{1ULL << 30, 1, "none", true, {}};

class Setup : public ::testing::Test {
 public:
  Setup() {
    std::string name = std::filesystem::temp_directory_path() / "streamfs-setup.XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~Setup() override { std::filesystem::remove_all(root_); }

 protected:
  Machine machine(const Files& files) {
    for (const auto& [path, content] : files) {
      const std::filesystem::path file = root_ / path;
      std::filesystem::create_directories(file.parent_path());
      if (content.starts_with("->"))
        std::filesystem::create_symlink(content.substr(2), file);
      else
        std::ofstream(file, std::ios::app) << content << "\n";
    }
    return read_machine(root_, questions());
  }
  Proposal proposal(const Files& files, const Wish& wish = {}) {
    return propose(machine(files), wish);
  }
  Questions questions() const {
    return {[this](const std::string& data) -> Result<DeviceAnswer> {
              const auto found = answers_.find(data);
              if (found == answers_.end()) return Error{ENOENT, data};
              return found->second;
            },
            [this](const std::string&) -> Result<std::optional<std::string>> { return dax_; }};
  }

  std::filesystem::path root_;
  std::map<std::string, DeviceAnswer> answers_;
  std::optional<std::string> dax_;  // the content of every devdax device
};

std::vector<std::string> commands(const Proposal& proposal) {
  std::vector<std::string> out;
  for (const Step& each : proposal.steps) out.push_back(step_text(each));
  return out;
}

std::string effect_at(const Proposal& proposal, std::string_view event) {
  for (const Consequence& each : proposal.consequences)
    if (each.event == event) return each.effect;
  return "no such event";
}

auto refusal(const std::string& device, const std::string& why, const std::string& remedy = "") {
  return AllOf(Field(&Refusal::device, device), Field(&Refusal::why, HasSubstr(why)),
               Field(&Refusal::remedy, remedy));
}

TEST_F(Setup, AnFdpSsdAndPersistentDevdaxAreUsedAsTheyAre) {
  answers_ = {{"/dev/ng0n1", kFdp}};
  const Proposal made =
      proposal(kBase + nvme("0") + memory("ACPI.NFIT", "dax", "memory_controller"));
  EXPECT_EQ(made.config,
            "# Written by streamctl setup.\nDATA=/dev/disk/by-id/nvme-generic-ssd_S0\n"
            "META=/dev/dax0.0\n");
  EXPECT_EQ(made.meta_class, MetaClass::kPersistent);
  EXPECT_THAT(commands(made),
              ElementsAre("mkdir -p /srv/data /etc/streamfs/srv",
                          "mkfs.streamfs --meta /dev/dax0.0 /dev/disk/by-id/nvme-generic-ssd_S0",
                          "write /etc/streamfs/srv/data.conf",
                          StartsWith("systemctl enable --now streamfs@srv-data.service "
                                     "classifierd@srv-data.service streamfs-trim@")));
  EXPECT_THAT(made.refused, ElementsAre(refusal("/dev/sda", "has partitions (sda1)"),
                                        refusal("/dev/sda1", "is mounted at /")));
  EXPECT_THAT(effect_at(made, "fsync"), HasSubstr("once META has the data"));
  EXPECT_THAT(effect_at(made, "power cut"), HasSubstr("every finished change of names is kept"));
  EXPECT_THAT(effect_at(made, "power-off in order"), "Nothing is lost.");
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST_F(Setup, DramInModeFsdaxBecomesDevdaxAndIsMadeAgainAtEachBoot) {
  answers_ = {{"/dev/ng0n1", kPlain}, {"/dev/pmem0", kBlank}};
  const Proposal made = proposal(kBase + nvme("0") + memory("e820", "memory") +
                                 Files{{"proc/cmdline", "quiet memmap=1G!4G memmap=4K$2G"}});
  EXPECT_EQ(made.config,
            "# Written by streamctl setup.\nDATA=/dev/disk/by-id/nvme-ssd_S0\nMETA=/dev/dax0.0\n"
            "PMEM_NAMESPACE=namespace0.0\n");
  EXPECT_EQ(made.meta_class, MetaClass::kVolatile);
  ASSERT_EQ(made.steps.size(), 7);
  EXPECT_EQ(step_text(made.steps[0]), "blkdiscard --zeroout /dev/pmem0");
  EXPECT_EQ(step_text(made.steps[1]),
            "ndctl create-namespace --bus=e820 -f -e namespace0.0 -m devdax");
  EXPECT_EQ(step_text(made.steps[2]), "udevadm settle --timeout=60");
  EXPECT_THAT(made.units, Contains("streamfs-pmem@srv-data.service"));
  EXPECT_EQ(made.units.front(), "streamfs-pmem@srv-data.service");
  EXPECT_EQ(effect_at(made, "fsync"), "It flushes the SSD.");
  EXPECT_THAT(effect_at(made, "power cut"), HasSubstr("Names changed in the last second"));
  EXPECT_THAT(effect_at(made, "power-off in order"), HasSubstr("checksums of data are lost"));
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("DATA has no streams")));
}

TEST_F(Setup, ARawRegionOfDramBesideAnSsdWithStreams) {
  answers_ = {{"/dev/ng0n1", kStreams}, {"/dev/pmem0", kBlank}};
  const Proposal made = proposal(kBase + nvme("0") + memory("e820", "raw"));
  EXPECT_EQ(made.data.node, "/dev/ng0n1");
  EXPECT_EQ(made.data.streams, 4);
  EXPECT_EQ(made.meta, "/dev/dax0.0");
  EXPECT_EQ(step_text(made.steps[1]),
            "ndctl create-namespace --bus=e820 -f -e namespace0.0 -m devdax");
}

TEST_F(Setup, DramThatIsDevdaxAlreadyIsLeftAsItIs) {
  answers_ = {{"/dev/ng0n1", kStreams}};
  const Proposal made = proposal(kBase + nvme("0") + memory("e820", "dax"));
  EXPECT_EQ(made.pmem_namespace, "namespace0.0");
  EXPECT_THAT(commands(made), Not(Contains(StartsWith("ndctl"))));
  EXPECT_THAT(commands(made), Not(Contains(StartsWith("blkdiscard"))));
}

TEST_F(Setup, WithoutNdctlDramIsRefusedWithTheWayToGetIt) {
  answers_ = {{"/dev/ng0n1", kFdp}, {"/dev/pmem0", kBlank}};
  const Proposal made = proposal(root_on("sda", "sda1") + nvme("0") + memory("e820", "memory"));
  EXPECT_THAT(made.refused,
              Contains(refusal("/dev/pmem0", "ndctl",
                               "apt-get install ndctl && ndctl create-namespace -f -e "
                               "namespace0.0 -m devdax")));
  EXPECT_EQ(made.meta, "/var/lib/streamfs/srv/data.meta");
  EXPECT_THAT(commands(made), Not(Contains(StartsWith("systemctl"))));
  EXPECT_THAT(made.notes, Contains(HasSubstr("systemd does not run here")));
}

TEST_F(Setup, AnNvdimmThatIsNotDevdaxIsRefusedWithTheCommand) {
  answers_ = {{"/dev/ng0n1", kFdp}, {"/dev/pmem0", kBlank}};
  const Proposal made =
      proposal(kBase + nvme("0") + memory("ACPI.NFIT", "memory", "memory_controller"));
  EXPECT_THAT(made.refused,
              Contains(refusal("/dev/pmem0", "is in mode fsdax",
                               "ndctl create-namespace -f -e namespace0.0 -m devdax")));
  EXPECT_EQ(made.meta_class, MetaClass::kSynced);
}

TEST_F(Setup, MemoryThatHoldsSomethingIsNeverTaken) {
  answers_ = {{"/dev/ng0n1", kFdp},
              {"/dev/pmem1", DeviceAnswer{1 << 30, 1, "none", true, "a filesystem of type xfs"}}};
  dax_ = "a streamfs metadata device";
  const Proposal made = proposal(kBase + nvme("0") + memory("ACPI.NFIT", "dax", "cpu_cache") +
                                 memory("e820", "memory", "", "1"));
  EXPECT_THAT(made.refused, Contains(refusal("/dev/dax0.0", "holds a streamfs metadata device")));
  EXPECT_THAT(made.refused, Contains(refusal("/dev/pmem1", "holds a filesystem of type xfs")));
  EXPECT_EQ(made.meta, "/var/lib/streamfs/srv/data.meta");
}

TEST_F(Setup, WithoutAnyMemoryMetaIsAFileAndTheKernelParameterIsNamed) {
  answers_ = {{"/dev/ng0n1", kFdp}};
  const Proposal made =
      proposal(kBase + nvme("0") +
               Files{{"proc/meminfo", "MemTotal:       16777216 kB"},
                     {"proc/iomem",
                      "00001000-0009fbff : System RAM\n100000000-43fffffff : System RAM\n"
                      "  100000000-1ffffffff : Kernel code"}});
  EXPECT_EQ(made.meta, "/var/lib/streamfs/srv/data.meta");
  EXPECT_EQ(made.meta_class, MetaClass::kSynced);
  EXPECT_THAT(commands(made), Contains("mkdir -p /srv/data /etc/streamfs/srv "
                                       "/var/lib/streamfs/srv"));
  EXPECT_THAT(effect_at(made, "power cut"), HasSubstr("Everything that was fsync'd is kept"));
  EXPECT_THAT(made.notes, ElementsAre(AllOf(HasSubstr("memmap=2048M!15360M "),
                                            HasSubstr("takes that much from programs"),
                                            HasSubstr("its content goes with the power"))));
}

TEST_F(Setup, ALaptopWithEmmcAndSataOnly) {
  answers_ = {{"/dev/mmcblk0", kPlain}, {"/dev/sdb", kPlain}, {"/dev/sda2", kPlain}};
  const Files laptop = {
      {"sys/block/mmcblk0/size", "60000000"},      {"sys/block/mmcblk0/device/type", "MMC"},
      {"sys/block/mmcblk0/device/name", "DG4032"}, {"sys/block/mmcblk0boot0/size", "8192"},
      {"sys/block/sdb/size", "900000000"},         {"sys/block/sdb/removable", "1"},
      {"sys/block/sda/sda2/partition", "2"},       {"sys/block/sda/sda2/size", "800000000"},
      {"sys/class/power_supply/AC/type", "Mains"}, {"sys/class/power_supply/BAT0/type", "Battery"}};
  const Proposal made = proposal(kBase + laptop);
  EXPECT_EQ(made.data.device, "/dev/mmcblk0");
  EXPECT_EQ(made.data.kind, "eMMC");
  EXPECT_EQ(made.data.model, "DG4032");
  EXPECT_THAT(made.refused, Contains(refusal("/dev/sdb", "is removable")));
  EXPECT_THAT(made.units, Contains("streamfs-suspend@srv-data.service"));
  EXPECT_THAT(effect_at(made, "battery"), HasSubstr("until it is empty"));
  EXPECT_THAT(made.notes, Contains(HasSubstr("no link in /dev/disk/by-id")));
}

TEST_F(Setup, APartitionOfTheSystemsDiskIsDataIfNothingElseIsAndSaysSo) {
  answers_ = {{"/dev/sda2", kPlain}};
  const Proposal made = proposal(kBase + Files{{"sys/block/sda/sda2/partition", "2"},
                                               {"sys/block/sda/sda2/size", "800000000"}});
  EXPECT_EQ(made.data.device, "/dev/sda2");
  EXPECT_EQ(made.data.kind, "disk partition");
  EXPECT_THAT(made.notes, Contains(HasSubstr("DATA and META are on one disk")));
}

TEST_F(Setup, AMouseWithABatteryMakesNoLaptop) {
  const Files mouse = {{"sys/class/power_supply/hid/type", "Battery"},
                       {"sys/class/power_supply/hid/scope", "Device"}};
  EXPECT_FALSE(machine(kBase + mouse).has_battery);
}

TEST_F(Setup, MetaIsAFileOnAMountedDaxFilesystem) {
  answers_ = {{"/dev/ng0n1", kFdp}};
  const Files dax = {
      {"sys/dev/block/259:50", "->../../devices/bus/ndbus0/region0/namespace0.0/block/pmem0"},
      {"proc/self/mountinfo",
       "30 20 259:50 / /mnt/pm\\040em rw,noatime shared:2 - ext4 /dev/pmem0 rw,dax=always"}};
  const Proposal made =
      proposal(kBase + nvme("0") + memory("ACPI.NFIT", "memory", "cpu_cache") + dax);
  EXPECT_EQ(made.meta, "/mnt/pm em/streamfs-srv-data.meta");
  EXPECT_EQ(made.meta_class, MetaClass::kPersistent);
  EXPECT_THAT(made.refused, Contains(refusal("/dev/pmem0", "is mounted at /mnt/pm em")));
  EXPECT_THAT(commands(made), Contains(StartsWith("mkfs.streamfs --meta '/mnt/pm em/streamfs-")));
}

TEST_F(Setup, TheFreeOneOfTwoNamespacesIsChosen) {
  answers_ = {{"/dev/ng0n1", kFdp}, {"/dev/ng1n1", kPlain}, {"/dev/nvme1n1", kPlain}};
  const Files used = {{"proc/self/mountinfo", "31 20 259:0 / /home rw - xfs /dev/nvme0n1 rw"}};
  const Proposal made = proposal(kBase + nvme("0") + nvme("1") + used);
  EXPECT_EQ(made.data.device, "/dev/disk/by-id/nvme-ssd_S1");
  EXPECT_THAT(made.refused, Contains(refusal("/dev/nvme0n1", "is mounted at /home")));
}

TEST_F(Setup, SwapHoldersAndContentKeepADiskFromBeingChosen) {
  answers_ = {{"/dev/ng2n1", DeviceAnswer{1 << 30, 8, "FDP", true, "a filesystem of type ext4"}}};
  const Files used = {{"proc/swaps", "Filename Type\n/dev/nvme0n1 partition"},
                      {"sys/block/nvme1n1/holders/dm-0/.keep", ""}};
  const Proposal made = proposal(kBase + nvme("0") + nvme("1") + nvme("2") + nvme("3") + used);
  EXPECT_FALSE(made.possible());
  EXPECT_THAT(made.steps, IsEmpty());
  EXPECT_THAT(made.refused, Contains(refusal("/dev/nvme0n1", "is used for swap")));
  EXPECT_THAT(made.refused, Contains(refusal("/dev/nvme1n1", "is used by dm-0")));
  EXPECT_THAT(made.refused, Contains(refusal("/dev/ng2n1", "holds a filesystem of type ext4")));
  EXPECT_THAT(made.refused, Contains(refusal("/dev/nvme3n1", "cannot be read")));
}

TEST_F(Setup, StreamsWinOverSizeAndADiskOverItsOlderKind) {
  answers_ = {{"/dev/ng0n1", kPlain},
              {"/dev/nvme0n1", kPlain},
              {"/dev/ng1n1", DeviceAnswer{1 << 30, 2, "FDP", true, {}}},
              {"/dev/sdb", DeviceAnswer{1ULL << 43, 1, "none", true, {}}}};
  const Files rotating = {{"sys/block/sdb/size", "9000000000"},
                          {"sys/block/sdb/queue/rotational", "1"}};
  EXPECT_EQ(proposal(kBase + nvme("0") + nvme("1") + rotating).data.node, "/dev/ng1n1");
  answers_.erase("/dev/ng1n1");
  std::filesystem::remove_all(root_);
  EXPECT_EQ(proposal(kBase + nvme("0") + rotating).data.node, "/dev/nvme0n1");
}

TEST_F(Setup, WhatTheUserNamesIsUsedOrRefused) {
  answers_ = {{"/dev/ng0n1", kFdp}, {"emu:/srv/ssd", kStreams}};
  const Machine here =
      machine(kBase + nvme("0") + memory("ACPI.NFIT", "raw", "cpu_cache") +
              Files{{"proc/self/mountinfo", "40 20 0:9 / /run rw - tmpfs tmpfs rw"}});
  Wish wish{"/srv/my data-1", named_disk(here, "emu:/srv/ssd", questions()), "/srv/m"};
  const Proposal named = propose(here, wish);
  EXPECT_EQ(named.data.kind, "block");
  EXPECT_EQ(named.config_file, "/etc/streamfs/srv/my data-1.conf");
  EXPECT_THAT(named.config, HasSubstr("DATA=emu:/srv/ssd\nMETA=/srv/m\n"));
  EXPECT_THAT(named.units, Contains("streamfs@srv-my\\x20data\\x2d1.service"));
  EXPECT_EQ(named.meta_class, MetaClass::kSynced);
  wish.meta = "/run/m";
  EXPECT_EQ(propose(here, wish).meta_class, MetaClass::kVolatile);
  wish.meta = "/dev/pmem0";
  const Proposal refused = propose(here, wish);
  EXPECT_FALSE(refused.possible());
  EXPECT_THAT(refused.refused, Contains(Field(&Refusal::device, "/dev/pmem0")));
  wish = {"/srv/data", named_disk(here, "/dev/sda1", questions()), ""};
  EXPECT_FALSE(propose(here, wish).possible());
}

TEST_F(Setup, UnitsAreNamedAsSystemdEscapesPaths) {
  EXPECT_EQ(escaped_path("/srv/data"), "srv-data");
  EXPECT_EQ(escaped_path("//srv//x/"), "srv-x");
  EXPECT_EQ(escaped_path("/.a/b.c"), "\\x2ea-b.c");
  EXPECT_EQ(escaped_path("/"), "-");
}

TEST_F(Setup, WordsAndJsonHaveEveryPartOfAProposal) {
  answers_ = {{"/dev/ng0n1", kFdp}};
  const Proposal made = proposal(kBase + nvme("0"));
  const std::string text = proposal_text(made, {});
  const nlohmann::json json = proposal_json(made);
  for (const Step& each : made.steps) EXPECT_THAT(text, HasSubstr(step_text(each)));
  for (const Consequence& each : made.consequences) EXPECT_THAT(text, HasSubstr(each.event));
  for (const Refusal& each : made.refused)
    EXPECT_THAT(text, HasSubstr(each.device + " " + each.why));
  EXPECT_EQ(json.at("steps").size(), made.steps.size());
  EXPECT_EQ(json.at("consequences").size(), made.consequences.size());
  EXPECT_EQ(json.at("refused").size(), made.refused.size());
  EXPECT_EQ(json.at("data").at("pstreams"), 8);
}

}  // namespace
}  // namespace streamfs::tools
