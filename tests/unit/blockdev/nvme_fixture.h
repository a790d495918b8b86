// An emulated controller, and a controller between it and the device under test that takes down
// what is sent and can answer in its stead.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/emulated_controller.h"
#include "fuse-fs/blockdev/nvme_device.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/ssd.h"

namespace streamfs::blockdev {

class Witness final : public nvme::Controller {
 public:
  // `Instead` answers in place of the controller; `After` changes the controller's answer.
  using Instead = std::function<std::optional<Result<uint32_t>>(const nvme::Command&, Bytes)>;
  using After = std::function<void(const nvme::Command&, Bytes)>;
  struct Log {
    std::vector<nvme::Command> admin, io;
    std::vector<nvme::Command> started;  // of these, what nobody waited for in the call
    std::vector<int64_t> pauses_ms;      // before what was sent again; nobody sleeps
    Instead instead_admin, instead_io;
    After after_admin, after_io;
  };

  Witness(nvme::Controller& inner, Log& log) : inner_(inner), log_(log) {}
  const std::string& path() const override { return inner_.path(); }
  uint32_t nsid() const override { return inner_.nsid(); }
  const char* transport() const override { return inner_.transport(); }
  uint64_t max_transfer_bytes() const override { return inner_.max_transfer_bytes(); }
  Result<uint32_t> admin(const nvme::Command& command, Bytes data) override {
    log_.admin.push_back(command);
    if (log_.instead_admin)
      if (auto answer = log_.instead_admin(command, data)) return *answer;
    auto answer = inner_.admin(command, data);
    if (log_.after_admin) log_.after_admin(command, data);
    return answer;
  }
  Result<uint32_t> io(const nvme::Command& command, Bytes data) override {
    log_.io.push_back(command);
    if (log_.instead_io)
      if (auto answer = log_.instead_io(command, data)) return *answer;
    auto answer = inner_.io(command, data);
    if (log_.after_io) log_.after_io(command, data);
    return answer;
  }
  void start(const nvme::Command& command, Bytes data, nvme::Done done) override {
    log_.started.push_back(command);
    done(io(command, data));
  }
  void start_after(std::chrono::milliseconds pause, const nvme::Command& command, Bytes data,
                   nvme::Done done) override {
    log_.pauses_ms.push_back(pause.count());
    start(command, data, std::move(done));
  }

 private:
  nvme::Controller& inner_;
  Log& log_;
};

class NvmeTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBlocks = 4096;

  NvmeTest() {
    const char* base = std::getenv("TMPDIR");
    directory_ = std::string(base != nullptr ? base : "/tmp") + "/streamfs-nvme.XXXXXX";
    SFS_ASSERT(mkdtemp(directory_.data()) != nullptr);
  }
  ~NvmeTest() override {
    controller_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  void make_ssd(bool plp = true) {
    ssd::GeometryRequest request;
    request.user_bytes = kBlocks * kBlockSize;
    request.spare = 0.3;
    request.streams = 4;
    request.pages_per_block = 32;
    request.plp = plp;
    const Result<ssd::Geometry> geometry = ssd::plan_geometry(request);
    SFS_ASSERT(geometry.ok());
    SFS_ASSERT(ssd::Image::create(directory_ + "/ssd", *geometry, true).ok());
  }

  // Makes the controller, on an SSD made before or now.
  EmulatedController& controller(const EmulatedNvme& kind) {
    controller_.reset();
    if (!std::filesystem::exists(directory_ + "/ssd")) make_ssd();
    auto opened = EmulatedController::open(directory_ + "/ssd", kind, {});
    SFS_ASSERT(opened.ok());
    controller_ = std::move(*opened);
    return *controller_;
  }

  Result<std::unique_ptr<NvmeDevice>> open(const EmulatedNvme& kind, bool read_only = false) {
    return NvmeDevice::open(std::make_unique<Witness>(controller(kind), log_),
                            {.read_only = read_only});
  }
  std::unique_ptr<NvmeDevice> device(const EmulatedNvme& kind, bool read_only = false) {
    auto opened = open(kind, read_only);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::move(*opened);
  }

  static Result<void> put(Device& device, uint64_t block, uint64_t blocks, int value,
                          uint16_t stream) {
    const std::vector<std::byte> bytes(blocks * kBlockSize, static_cast<std::byte>(value));
    IoBatch batch(device);
    batch.write(BlockNo{block}, bytes, {device.placement(PStreamId{stream}), {}});
    return batch.wait();
  }
  static bool holds(Device& device, uint64_t block, uint64_t blocks, int value) {
    std::vector<std::byte> bytes(blocks * kBlockSize);
    IoBatch batch(device);
    batch.read(BlockNo{block}, bytes);
    return batch.wait().ok() &&
           bytes == std::vector<std::byte>(bytes.size(), static_cast<std::byte>(value));
  }
  std::vector<nvme::Transfer> sent(uint8_t opcode) const {
    std::vector<nvme::Transfer> transfers;
    for (const nvme::Command& command : log_.io)
      if (command.opcode == opcode) transfers.push_back(nvme::transfer_of(command));
    return transfers;
  }
  // Returns the pages that the emulated flash counts for a stream.
  uint64_t pages_of_stream(size_t stream) const {
    return ssd::observe_stats(directory_ + "/ssd")->streams.at(stream).written_bytes / kBlockSize;
  }

  std::string directory_;
  std::unique_ptr<EmulatedController> controller_;
  Witness::Log log_;
};

inline constexpr EmulatedNvme kStreamsSsd{.mechanism = nvme::Mechanism::kStreams};
inline constexpr EmulatedNvme kFdpSsd{.mechanism = nvme::Mechanism::kFdp};

}  // namespace streamfs::blockdev
