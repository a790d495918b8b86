// NvmeDevice above a controller whose completions run in a thread of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/emulated_controller.h"
#include "fuse-fs/blockdev/nvme_device.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/query.h"
#include "fuse-fs/nvme/status.h"
#include "tests/unit/blockdev/nvme_fixture.h"

namespace streamfs::blockdev {
namespace {

using nvme::Command;

// Works off what is started one after the other, the newest of a few first, so that parts of a
// request end in any order; a command is refused now and then for a state that passes.
class Threaded final : public nvme::Controller {
 public:
  explicit Threaded(nvme::Controller& inner) : inner_(inner), worker_([this] { work(); }) {}
  ~Threaded() override {
    {
      const MutexLock lock(mutex_);
      over_ = true;
      more_.notify_all();
    }
    worker_.join();
  }
  const std::string& path() const override { return inner_.path(); }
  uint32_t nsid() const override { return inner_.nsid(); }
  const char* transport() const override { return "a thread"; }
  uint64_t max_transfer_bytes() const override { return inner_.max_transfer_bytes(); }
  Result<uint32_t> admin(const Command& command, Bytes data) override {
    return inner_.admin(command, data);
  }
  Result<uint32_t> io(const Command& command, Bytes data) override {
    return inner_.io(command, data);
  }
  void start(const Command& command, Bytes data, nvme::Done done) override {
    const MutexLock lock(mutex_);
    queue_.push_back({command, data, std::move(done)});
    more_.notify_all();
  }
  void start_after(std::chrono::milliseconds, const Command& command, Bytes data,
                   nvme::Done done) override {
    ++again;
    start(command, data, std::move(done));
  }
  std::thread::id thread() const { return worker_.get_id(); }

  std::atomic<int> again{0};
  std::atomic<uint32_t> refuses_one_in{0};  // 0: none

 private:
  struct Started {
    Command command;
    Bytes data;
    nvme::Done done;
  };
  std::optional<Started> next() {
    const MutexLock lock(mutex_);
    while (queue_.empty() && !over_) more_.wait(mutex_);
    if (queue_.empty()) return std::nullopt;
    const size_t pick = random_() % queue_.size();
    Started one = std::move(queue_[pick]);
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(pick));
    return one;
  }
  void work() {
    while (auto one = next()) {
      const uint32_t one_in = refuses_one_in;
      if (one_in != 0 && random_() % one_in == 0)
        one->done(nvme::error_of(0x0021, "interrupted"));
      else
        one->done(inner_.io(one->command, one->data));
    }
  }

  nvme::Controller& inner_;
  Mutex mutex_;  // leaf
  CondVar more_;
  bool over_ SFS_GUARDED_BY(mutex_) = false;
  std::deque<Started> queue_ SFS_GUARDED_BY(mutex_);
  std::mt19937 random_{1};  // the worker's
  std::thread worker_;
};

class ThreadedTest : public NvmeTest {
 protected:
  ThreadedTest() {
    make_ssd(false);
    EmulatedNvme kind = kStreamsSsd;
    kind.mdts = 1;  // 8 KiB: several commands a request
    auto threaded = std::make_unique<Threaded>(controller(kind));
    threaded_ = threaded.get();
    ssd_ = NvmeDevice::open(std::move(threaded), {}).value();
  }

  Threaded* threaded_ = nullptr;
  std::unique_ptr<NvmeDevice> ssd_;
};

TEST_F(ThreadedTest, EveryCompletionRunsOnceInTheControllersThreadOrTheCallers) {
  // The caller's where it had started the last command before that ended.
  const auto caller = std::this_thread::get_id();
  std::atomic<int> done{0}, elsewhere{0};
  const std::vector<std::byte> bytes(7 * kBlockSize, std::byte{3});
  for (uint64_t i = 0; i < 50; ++i)
    ssd_->write(BlockNo{i * 7}, bytes, {}, [&](const Result<void>& result) {
      EXPECT_TRUE(result.ok());
      const auto here = std::this_thread::get_id();
      elsewhere += here == threaded_->thread() || here == caller ? 0 : 1;
      ++done;
    });
  ASSERT_TRUE(ssd_->flush().ok());  // one more command in the same queue
  while (done < 50) std::this_thread::yield();
  EXPECT_EQ(elsewhere, 0);
  EXPECT_TRUE(holds(*ssd_, 0, 350, 3));
  EXPECT_EQ(done, 50);
}

TEST_F(ThreadedTest, ThreadsWriteFlushAndTrimThroughRefusalsAndResets) {
  threaded_->refuses_one_in = 20;
  std::atomic<int> failed{0};
  std::vector<std::thread> writers;
  for (uint16_t t = 1; t <= 3; ++t)
    writers.emplace_back([&, t] {
      const uint64_t base = uint64_t{1000} * t;
      for (uint64_t i = 0; i < 60; ++i) {
        failed += put(*ssd_, base + i * 5, 5, t, t).ok() ? 0 : 1;
        failed += i % 10 != 0 || ssd_->flush().ok() ? 0 : 1;
        failed += i % 10 != 5 || ssd_->trim(BlockNo{base + 500}, 20).ok() ? 0 : 1;
      }
    });
  for (int i = 0; i < 10; ++i) {
    controller_->reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& writer : writers) writer.join();
  threaded_->refuses_one_in = 0;
  EXPECT_EQ(failed, 0);
  EXPECT_GT(threaded_->again, 0);
  for (uint16_t t = 1; t <= 3; ++t) EXPECT_TRUE(holds(*ssd_, uint64_t{1000} * t, 300, t));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(put(*ssd_, 0, 1, 1, 1).ok());
  EXPECT_EQ(nvme::streams_parameters(*controller_)->nsa, 3u) << "and the streams are back";
  ASSERT_EQ(ssd_->stats()->streams.size(), 4u);
}

}  // namespace
}  // namespace streamfs::blockdev
