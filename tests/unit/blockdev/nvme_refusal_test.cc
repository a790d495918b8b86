// NvmeDevice when commands are refused, cancelled or come back with an error: after resets, and by
// what the status says.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/describe.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/emulated_controller.h"
#include "fuse-fs/blockdev/nvme_device.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/linux.h"
#include "fuse-fs/nvme/query.h"
#include "fuse-fs/nvme/status.h"
#include "fuse-fs/nvme/structures.h"
#include "tests/unit/blockdev/nvme_fixture.h"

namespace streamfs::blockdev {
namespace {

using nvme::Command;

// Shows what a controller answered to writes, whoever sent them.
class Counting final : public nvme::Controller {
 public:
  using Count = std::function<void(const Result<uint32_t>&)>;
  Counting(nvme::Controller& inner, Count count) : inner_(inner), count_(std::move(count)) {}
  const std::string& path() const override { return inner_.path(); }
  uint32_t nsid() const override { return inner_.nsid(); }
  const char* transport() const override { return inner_.transport(); }
  uint64_t max_transfer_bytes() const override { return inner_.max_transfer_bytes(); }
  Result<uint32_t> admin(const Command& command, Bytes data) override {
    return inner_.admin(command, data);
  }
  Result<uint32_t> io(const Command& command, Bytes data) override {
    return inner_.io(command, data);
  }
  void start(const Command& command, Bytes data, nvme::Done done) override {
    inner_.start(command, data, [this, done = std::move(done)](const Result<uint32_t>& result) {
      count_(result);
      done(result);
    });
  }

 private:
  nvme::Controller& inner_;
  const Count count_;
};

TEST_F(NvmeTest, AfterAResetNothingFailsAndStreamsAreTakenAgain) {
  const auto ssd = device(kStreamsSsd);
  ASSERT_TRUE(put(*ssd, 0, 1, 1, 1).ok());
  controller_->reset();
  log_.io.clear();
  ASSERT_TRUE(put(*ssd, 8, 2, 2, 1).ok());
  ASSERT_EQ(sent(nvme::opcode::kWrite).size(), 2u);
  EXPECT_EQ(sent(nvme::opcode::kWrite)[1].directive_type, 0u);
  EXPECT_TRUE(holds(*ssd, 8, 2, 2));
  EXPECT_EQ(pages_of_stream(0), 2u);
  EXPECT_EQ(ssd->stats()->streams.at(0).written_bytes, 2 * kBlockSize);  // where it went
  EXPECT_EQ(ssd->stats()->streams.at(1).written_bytes, kBlockSize);
  ASSERT_TRUE(put(*ssd, 16, 3, 3, 2).ok());
  EXPECT_EQ(sent(nvme::opcode::kWrite).size(), 3u);
  EXPECT_EQ(pages_of_stream(0), 2u);
  EXPECT_EQ(nvme::streams_parameters(*controller_)->nsa, 3u);
}

TEST_F(NvmeTest, AfterAResetThatLostItsStreamsToOthersWritesGoOnWithoutThem) {
  const auto ssd = device(kStreamsSsd);
  controller_->reset();
  log_.instead_admin = [](const Command& command, Bytes) -> std::optional<Result<uint32_t>> {
    if (command.opcode == nvme::opcode::kDirectiveReceive && (command.cdw11() & 0xff) == 3)
      return Error{ENOSPC, "no streams"};
    return std::nullopt;
  };
  ASSERT_TRUE(put(*ssd, 0, 1, 1, 1).ok());
  log_.io.clear();
  for (uint64_t block = 1; block < 4; ++block) ASSERT_TRUE(put(*ssd, block, 1, 1, 1).ok());
  EXPECT_EQ(sent(nvme::opcode::kWrite).size(), 3u);  // each once, without a stream
  EXPECT_TRUE(holds(*ssd, 0, 4, 1));
}

TEST_F(NvmeTest, AResetWhileStreamsAreTakenAgainDoesNotLoseThem) {
  const auto ssd = device(kStreamsSsd);
  controller_->reset();
  int resets = 0;
  log_.instead_admin = [&](const Command& command, Bytes) -> std::optional<Result<uint32_t>> {
    const bool allocates =
        command.opcode == nvme::opcode::kDirectiveReceive && (command.cdw11() & 0xff) == 3;
    if (allocates && ++resets <= 2) controller_->reset();
    return std::nullopt;
  };
  for (uint64_t block = 0; block < 4; ++block) ASSERT_TRUE(put(*ssd, block, 1, 1, 1).ok());
  EXPECT_EQ(resets, 3);
  const auto parameters = nvme::streams_parameters(*controller_);
  ASSERT_TRUE(parameters.ok());
  EXPECT_EQ(parameters->nsa, 3u);
  EXPECT_EQ(sent(nvme::opcode::kWrite).back().directive_type, nvme::directive::kStreams);
}

// The kernel cancels what is in flight when a controller is reset, admin commands too.
TEST_F(NvmeTest, StreamsWhoseTakingIsCancelledAreTakenByTheNextWriter) {
  for (const int code : {EINTR, EAGAIN}) {
    const auto ssd = device(kStreamsSsd);
    controller_->reset();
    int cancelled = 0;
    log_.instead_admin = [&](const Command& command, Bytes) -> std::optional<Result<uint32_t>> {
      if (command.opcode != nvme::opcode::kDirectiveSend || ++cancelled > 2) return std::nullopt;
      return Error{code, "cancelled"};
    };
    for (uint64_t block = 0; block < 4; ++block) ASSERT_TRUE(put(*ssd, block, 1, 1, 1).ok());
    EXPECT_EQ(cancelled, 3);
    EXPECT_EQ(sent(nvme::opcode::kWrite).back().directive_type, nvme::directive::kStreams);
    log_ = {};
  }
}

// Others that a controller, or the kernel on the way to it, refuses a write with.
TEST_F(NvmeTest, OnlyInvalidFieldTakesAWritesStream) {
  const auto ssd = device(kStreamsSsd);
  for (const Error& other : {nvme::error_of(0x0080, "write"), nvme::error_of(0x0183, "write")}) {
    log_.io.clear();
    log_.instead_io = [&](const Command&, Bytes) { return std::optional<Result<uint32_t>>(other); };
    EXPECT_EQ(put(*ssd, 0, 1, 1, 1).error().code, other.code);
    EXPECT_EQ(log_.io.size(), 1u) << other.context;
  }
  log_ = {};
  int refused = 0;
  log_.instead_io = [&](const Command&, Bytes) -> std::optional<Result<uint32_t>> {
    if (++refused > 3) return std::nullopt;
    return nvme::returned(-EINVAL, 0, "write").error();  // the kernel's own: no path now
  };
  ASSERT_TRUE(put(*ssd, 0, 1, 1, 1).ok());
  for (const nvme::Transfer& each : sent(nvme::opcode::kWrite))
    EXPECT_EQ(each.directive_type, nvme::directive::kStreams);
}

TEST_F(NvmeTest, WhatPassesIsSentAgainABoundedNumberOfTimes) {
  make_ssd(false);
  EmulatedNvme kind = kFdpSsd;
  kind.mdts = 1;
  const auto ssd = device(kind);
  int refusals = 0;
  uint16_t status = 0;
  std::map<uint32_t, int> tries;  // of each command, by where it begins
  log_.instead_io = [&](const Command& command, Bytes) -> std::optional<Result<uint32_t>> {
    const uint32_t at = command.opcode == nvme::opcode::kWrite ? command.cdw10() : 1000;
    if (++tries[at] > refusals) return std::nullopt;
    return nvme::error_of(status, "x");
  };
  for (const uint16_t passing :
       std::initializer_list<uint16_t>{0x0004, 0x0006, 0x0007, 0x0008, 0x0021, 0x0022, 0x0082}) {
    status = passing;
    for (const int times : {0, 1, 5, 6}) {
      refusals = times;
      tries.clear();
      const int expected = times < 6 ? 0 : EIO;
      const auto code = [](const Result<void>& done) { return done.ok() ? 0 : done.error().code; };
      EXPECT_EQ(code(put(*ssd, 0, 4, times, 1)), expected) << times;
      EXPECT_EQ(code(ssd->flush()), expected) << times;
      EXPECT_EQ(tries, (std::map<uint32_t, int>{{0, std::min(times + 1, 6)},
                                                {2, std::min(times + 1, 6)},
                                                {1000, std::min(times + 1, 6)}}));
      tries.clear();
      EXPECT_EQ(code(ssd->trim(BlockNo{0}, 1)), expected) << times;
    }
  }
  refusals = 1;
  tries.clear();
  status = 0x4021;  // and not worth it
  EXPECT_EQ(put(*ssd, 0, 1, 1, 1).error().code, EIO);
  EXPECT_EQ(tries.at(0), 1);
}

TEST_F(NvmeTest, WhatIsSentAgainWaitsLongerEachTime) {
  make_ssd(false);
  const auto ssd = device(kFdpSsd);
  log_.instead_io = [](const Command&, Bytes) {
    return std::optional<Result<uint32_t>>(nvme::error_of(0x0021, "x"));
  };
  const std::vector<int64_t> expected = {1, 4, 16, 64, 256};
  EXPECT_EQ(put(*ssd, 0, 1, 1, 1).error().code, EIO);
  EXPECT_EQ(log_.pauses_ms, expected);
  log_.pauses_ms.clear();
  EXPECT_EQ(ssd->flush().error().code, EIO);
  EXPECT_EQ(log_.pauses_ms, expected);
}

// The kernel's block layer keeps its own requests until a reset is over; passed ones are cancelled,
// and then refused for want of a path.
TEST_F(NvmeTest, WhatAResetCutsOffIsSentAgainForHalfAMinute) {
  make_ssd(false);
  const auto ssd = device(kFdpSsd);
  int refusals = 0;
  log_.instead_io = [&](const Command&, Bytes) -> std::optional<Result<uint32_t>> {
    if (refusals-- <= 0) return std::nullopt;
    return nvme::error_of(refusals % 7 == 6 ? 0x0371 : 0x0370, "x");
  };
  for (const int times : {7, 20, 39}) {
    refusals = times;
    EXPECT_TRUE(put(*ssd, 0, 1, times, 1).ok()) << times;
    EXPECT_TRUE(holds(*ssd, 0, 1, times));
    refusals = times;
    EXPECT_TRUE(ssd->flush().ok()) << times;
  }
  log_.pauses_ms.clear();
  refusals = 1000;
  EXPECT_EQ(put(*ssd, 0, 1, 1, 1).error().code, EIO);
  EXPECT_EQ(refusals, 1000 - 40);
  EXPECT_EQ(std::accumulate(log_.pauses_ms.begin(), log_.pauses_ms.end(), int64_t{0}),
            1 + 4 + 16 + 64 + 256 + 34 * 1024);
}

// A single system call sends and waits if the controller has a ring.
TEST_F(NvmeTest, FlushesAndTrimsGoTheWayOfReadsAndWrites) {
  make_ssd(false);
  const auto ssd = device(kFdpSsd);
  log_.io.clear();
  log_.started.clear();
  ASSERT_TRUE(put(*ssd, 0, 8, 1, 1).ok());
  ASSERT_TRUE(ssd->flush().ok());
  ASSERT_TRUE(ssd->trim(BlockNo{0}, 8).ok());
  ASSERT_TRUE(ssd->release(PStreamId{1}).ok());
  EXPECT_EQ(log_.io.size(), 4u);
  EXPECT_EQ(log_.started, log_.io);
}

TEST_F(NvmeTest, ThreadsWriteOnAcrossResets) {
  make_ssd();
  EmulatedController& emulated = controller(kStreamsSsd);
  std::atomic<int> failed{0}, refused{0};
  std::atomic<bool> over{false};
  const auto count = [&](const Result<uint32_t>& result) { refused += result.ok() ? 0 : 1; };
  const auto device = NvmeDevice::open(std::make_unique<Counting>(emulated, count), {}).value();
  NvmeDevice& ssd = *device;
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t)
    writers.emplace_back([&, t] {
      const auto stream = static_cast<uint16_t>(t + 1);
      for (uint64_t i = 0; i < 200 || !over; ++i)
        failed += put(ssd, 1000 * stream + i % 200, 1, 10 + t, stream).ok() ? 0 : 1;
    });
  while (refused < 20) {  // one while streams are being taken again refuses nothing
    emulated.reset();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  over = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failed, 0);
  for (int t = 0; t < 3; ++t)
    EXPECT_TRUE(holds(ssd, 1000 * static_cast<uint64_t>(t + 1), 200, 10 + t));
  ASSERT_TRUE(put(ssd, 0, 1, 1, 1).ok());
  ASSERT_TRUE(put(ssd, 0, 1, 1, 1).ok());  // whatever was refused last, by now they are back
  const auto parameters = nvme::streams_parameters(emulated);
  ASSERT_TRUE(parameters.ok());
  EXPECT_EQ(parameters->nsa, 3u);
}

TEST_F(NvmeTest, OtherRefusalsAreErrors) {
  const auto ssd = device(kStreamsSsd);
  log_.instead_io = [](const Command&, Bytes) -> std::optional<Result<uint32_t>> {
    return Error{EIO, "broken"};
  };
  EXPECT_EQ(put(*ssd, 0, 1, 1, 1).error().code, EIO);
  EXPECT_EQ(log_.io.size(), 1u);
  log_.instead_io = [](const Command&, Bytes) -> std::optional<Result<uint32_t>> {
    return Error{EINVAL, "refused"};
  };
  EXPECT_EQ(put(*ssd, 0, 1, 1, 1).error().code, EINVAL);  // without a stream, too
  EXPECT_EQ(ssd->flush().ok(), true);                     // not sent: no volatile cache
}

TEST_F(NvmeTest, OneFailedPartFailsTheRequestOnce) {
  EmulatedNvme kind = kFdpSsd;
  kind.mdts = 1;
  const auto ssd = device(kind);
  log_.instead_io = [&](const Command& command, Bytes) -> std::optional<Result<uint32_t>> {
    if (nvme::transfer_of(command).first_lba == 2) return Error{EIO, "bad"};
    return std::nullopt;
  };
  int calls = 0;
  const std::vector<std::byte> bytes(6 * kBlockSize);
  ssd->write(BlockNo{0}, bytes, {}, [&](const Result<void>& done) {
    ++calls;
    EXPECT_EQ(done.error().code, EIO);
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(sent(nvme::opcode::kWrite).size(), 3u);
}

}  // namespace
}  // namespace streamfs::blockdev
