// Queries that need more than one command, and answers that no controller should give.
#include "fuse-fs/nvme/query.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/structures.h"

namespace streamfs::nvme {
namespace {

// Answers every command by one function.
class Scripted final : public Controller {
 public:
  using Answer = std::function<Result<uint32_t>(const Command&, Bytes)>;
  explicit Scripted(Answer answer) : answer_(std::move(answer)) {}
  const std::string& path() const override { return path_; }
  uint32_t nsid() const override { return 1; }
  const char* transport() const override { return "a script"; }
  uint64_t max_transfer_bytes() const override { return kBlockSize; }
  Result<uint32_t> admin(const Command& command, Bytes data) override {
    return answer_(command, data);
  }
  Result<uint32_t> io(const Command& command, Bytes data) override {
    return answer_(command, data);
  }
  void start(const Command& command, Bytes data, Done done) override {
    done(answer_(command, data));
  }

 private:
  const std::string path_ = "scripted";
  Answer answer_;
};

void copy(Bytes to, ConstBytes from) {
  std::copy_n(from.begin(), std::min(to.size(), from.size()), to.begin());
}

TEST(Queries, ALogPageIsReadInStepsThatEveryControllerTakes) {
  const FdpConfiguration one{0x80, 1, 3000, 1, 1 << 20, 0, std::vector<uint8_t>(3000, 2)};
  FdpConfiguration other = one;
  other.reclaim_unit_bytes = 1 << 21;
  const std::vector<std::byte> page = encode_fdp_configurations(std::vector{one, other});
  size_t largest = 0;
  Scripted controller([&](const Command& command, Bytes data) -> Result<uint32_t> {
    EXPECT_EQ(data.size(), ((command.cdw10() >> 16) + 1) * 4);
    largest = std::max(largest, data.size());
    const size_t at = command.cdw12();
    EXPECT_LT(at, page.size());
    copy(data, ConstBytes(page).subspan(at));
    return uint32_t{0};
  });
  const auto all = fdp_configurations(controller, 1).value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].reclaim_unit_bytes, uint64_t{1} << 21);
  EXPECT_EQ(all[1].types, other.types);
  EXPECT_EQ(largest, 4096u);
}

TEST(Queries, AllHandlesAreReadHoweverManyThereAre) {
  std::vector<RuhStatus> handles;
  for (uint16_t i = 0; i < 1000; ++i) handles.push_back({i, i, 0, i});
  const std::vector<std::byte> all = encode_ruh_status(handles);
  Scripted controller([&](const Command&, Bytes data) -> Result<uint32_t> {
    copy(data, all);
    return uint32_t{0};
  });
  EXPECT_EQ(ruh_statuses(controller).value(), handles);
}

// Linux describes user buffers by SGLs, and then QEMU's controller takes no byte too many.
TEST(Queries, NoMoreHandlesAreAskedForThanThereAre) {
  const std::vector<RuhStatus> handles = {{0, 0, 0, 7}, {1, 1, 0, 8}};
  const std::vector<std::byte> all = encode_ruh_status(handles);
  Scripted controller([&](const Command&, Bytes data) -> Result<uint32_t> {
    if (data.size() > all.size()) return Error{EIO, "Data SGL Length Invalid"};
    copy(data, all);
    return uint32_t{0};
  });
  EXPECT_EQ(ruh_statuses(controller).value(), handles);
}

// The page of another vendor, at the number where OCP has its own.
TEST(Queries, AForeignPageIsNotTakenForOcps) {
  Scripted controller([](const Command& command, Bytes data) -> Result<uint32_t> {
    std::ranges::fill(data, std::byte{0});
    if ((command.cdw10() & 0xff) == log_page::kOcpSmart) data[1] = std::byte{9};
    return uint32_t{0};
  });
  EXPECT_EQ(written(controller, {}, 1).source, WafSource::kNone);
}

// Whatever bytes a controller answers with, discovery ends, in a value or an error.
TEST(Queries, NoAnswerIsTrusted) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const bool sane_format = seed % 2 == 0;
    Scripted controller([&](const Command& command, Bytes data) -> Result<uint32_t> {
      for (std::byte& each : data) each = static_cast<std::byte>(random());
      if (command.opcode == opcode::kIdentify && sane_format) {
        if (command.cdw10() == kCnsNamespace) {
          NamespaceIdentity space;
          space.nsze = random();
          space.endgid = static_cast<uint16_t>(random());
          space.lbaf[0] = 12 << 16;
          copy(data, encode(space));
        } else {
          ControllerIdentity identity;
          identity.ctratt = static_cast<uint32_t>(random());
          identity.oacs = static_cast<uint16_t>(random());
          copy(data, encode(identity));
        }
      }
      if (random() % 8 == 0) return Error{EINVAL, "refused"};
      return static_cast<uint32_t>(random());
    });
    const auto found = discover(controller);
    if (found.ok()) {
      EXPECT_LE(found->handles.size(), kMostPStreams) << seed;
      (void)written(controller, found->controller, found->space.endgid);
    }
    (void)take_streams(controller, 7);
    (void)open_streams(controller, 4096);
  }
}

TEST(Queries, OpenStreamsAreAskedForInWhatOneCommandMayTransfer) {
  std::vector<uint16_t> many;
  for (uint16_t id = 1; id <= 5000; ++id) many.push_back(id);
  const std::vector<std::byte> all = encode_stream_status(many);
  size_t asked = 0;
  Scripted controller([&](const Command& command, Bytes data) -> Result<uint32_t> {
    EXPECT_EQ(data.size(), (command.cdw10() + 1) * 4);
    asked = data.size();
    copy(data, all);
    return uint32_t{0};
  });
  EXPECT_EQ(open_streams(controller, 4096)->size(), 2047u);
  EXPECT_EQ(asked, 4096u);
  EXPECT_EQ(open_streams(controller, uint64_t{1} << 40).value(), many);
  EXPECT_EQ(asked, 131072u);
}

}  // namespace
}  // namespace streamfs::nvme
