// The choice of a mount's transport, by what the machine offers.
#include "fuse-fs/frontend/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/assert.h"
#include "base/result.h"

namespace streamfs::frontend {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMib = 1 << 20;
constexpr uint64_t kOneGib = 1 << 30;

// A machine with the files that the choice reads.
class Machine {
 public:
  Machine() {
    std::string pattern = std::filesystem::temp_directory_path() / "streamfs-machine.XXXXXX";
    SFS_ASSERT(mkdtemp(pattern.data()) != nullptr);
    root = pattern;
    put(kSwitch, "N\n");
    const auto cpus = std::to_string(look_at_host().queues - 1);
    put(kPossible, cpus == "0" ? "0\n" : "0-" + cpus + "\n");
    put("sys/devices/system/cpu/online", "0\n");
  }
  ~Machine() { std::filesystem::remove_all(root); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
  std::string get(const std::string& name) const {
    std::ifstream in(root / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  TransportChoice choice(Transport wanted, bool enable = false) const {
    const Result<TransportChoice> chosen = choose_transport(wanted, enable, root);
    EXPECT_TRUE(chosen.ok());
    return chosen ? *chosen : TransportChoice{};
  }

  static constexpr const char* kSwitch = "sys/module/fuse/parameters/enable_uring";
  static constexpr const char* kPossible = "sys/devices/system/cpu/possible";
  std::filesystem::path root;
};

RingHost with_cpus(unsigned possible, unsigned online, uint64_t memory_bytes) {
  return {RingHost::Switch::kOn, possible, online, possible, memory_bytes, ""};
}

class TransportTest : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef STREAMFS_FUSE_IO_URING
    GTEST_SKIP() << "this build's libfuse has no io_uring";
#endif
  }
  Machine machine_;
};

TEST_F(TransportTest, AKernelThatIsToldNotToSaysHowToAllowIt) {
  const TransportChoice chosen = machine_.choice(Transport::kAuto);
  EXPECT_FALSE(chosen.io_uring);
  EXPECT_THAT(chosen.why, HasSubstr("echo Y >/sys/module/fuse/parameters/enable_uring"));
  EXPECT_THAT(chosen.why, HasSubstr("fuse.enable_uring=1"));
  EXPECT_EQ(machine_.get(Machine::kSwitch), "N\n");
}

TEST_F(TransportTest, AKernelWithoutItIsNoReasonToFail) {
  std::filesystem::remove(machine_.root / Machine::kSwitch);
  EXPECT_FALSE(machine_.choice(Transport::kAuto).io_uring);
  EXPECT_THAT(machine_.choice(Transport::kPreferred).why, HasSubstr("Linux 6.14"));
}

TEST_F(TransportTest, ForcedItFailsTheMountWithTheReason) {
  const Result<TransportChoice> chosen =
      choose_transport(Transport::kIoUring, false, machine_.root);
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().code, ENOPROTOOPT);
  EXPECT_THAT(chosen.error().context, HasSubstr("transport=io_uring: FUSE over io_uring is off"));
  EXPECT_THAT(chosen.error().context, HasSubstr("echo Y >"));
}

TEST_F(TransportTest, EnableUringSwitchesTheKernelOn) {
  if (!look_at_host().refusal.empty()) GTEST_SKIP() << "no io_uring";
  EXPECT_TRUE(machine_.choice(Transport::kAuto, true).io_uring);
  EXPECT_EQ(machine_.get(Machine::kSwitch).front(), 'Y');
  EXPECT_TRUE(machine_.choice(Transport::kIoUring).io_uring);
}

TEST_F(TransportTest, DevChangesNothingInTheKernel) {
  EXPECT_FALSE(machine_.choice(Transport::kDev, true).io_uring);
  EXPECT_EQ(machine_.get(Machine::kSwitch), "N\n");
}

TEST_F(TransportTest, TheMachineIsReadFromItsFiles) {
  machine_.put(Machine::kSwitch, "Y\n");
  machine_.put(Machine::kPossible, "0-3,8,10-11\n");
  machine_.put("sys/devices/system/cpu/online", "0,2\n");
  machine_.put("proc/self/cgroup", "1:cpu:/other\n0::/a/b\n");
  machine_.put("sys/fs/cgroup/a/memory.max", "268435456\n");
  machine_.put("sys/fs/cgroup/a/b/memory.max", "max\n");
  const RingHost host = look_at_host(machine_.root);
  EXPECT_EQ(host.enabled, RingHost::Switch::kOn);
  EXPECT_EQ(host.possible_cpus, 7U);
  EXPECT_EQ(host.online_cpus, 2U);
  EXPECT_EQ(host.memory_bytes, 256 * kMib);
}

TEST_F(TransportTest, WithoutSysNobodyKnowsTheNumberOfQueues) {
  machine_.put(Machine::kSwitch, "Y\n");
  machine_.put(Machine::kPossible, "");
  EXPECT_THAT(machine_.choice(Transport::kAuto).why, HasSubstr("cpu/possible cannot be read"));
}

TEST_F(TransportTest, TheKernelWouldWaitForeverForAQueueThatLibfuseDoesNotMake) {
  RingHost host = with_cpus(8, 4, 64 * kOneGib);
  EXPECT_EQ(why_no_io_uring(host), "");
  host.queues = 4;
  EXPECT_THAT(why_no_io_uring(host), HasSubstr("libfuse makes 4 queues"));
}

TEST_F(TransportTest, BuffersOfManyCpusNeedMemory) {
  EXPECT_EQ(why_no_io_uring(with_cpus(1, 1, kOneGib)), "");
  EXPECT_EQ(why_no_io_uring(with_cpus(512, 512, 128 * kOneGib)), "");
  EXPECT_THAT(why_no_io_uring(with_cpus(512, 512, 32 * kOneGib)), HasSubstr("for 512 CPUs"));
  EXPECT_THAT(why_no_io_uring(with_cpus(128, 128, 512 * kMib)), HasSubstr("(512.0 MiB)"));
}

TEST_F(TransportTest, QueuesHaveFewerEntriesWhereMemoryIsScarce) {
  EXPECT_EQ(queue_entries(with_cpus(512, 512, 256 * kOneGib)), kQueueEntries);
  EXPECT_EQ(queue_entries(with_cpus(512, 512, 128 * kOneGib)), kQueueEntriesLeast);
}

TEST_F(TransportTest, CpusThatAreNotThereCostNoBuffers) {
  EXPECT_EQ(why_no_io_uring(with_cpus(240, 4, 4 * kOneGib)), "");
  EXPECT_NE(why_no_io_uring(with_cpus(240, 240, 4 * kOneGib)), "");
}

TEST_F(TransportTest, ARefusedRingIsNamed) {
  RingHost host = with_cpus(2, 2, 4 * kOneGib);
  host.refusal = "a sandbox refuses io_uring: Operation not permitted";
  EXPECT_EQ(why_no_io_uring(host), host.refusal);
}

}  // namespace
}  // namespace streamfs::frontend
