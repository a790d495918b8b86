// Idle work in a thread of its own: when it begins, when it gives way, when it leaves the SSD
// alone.
#include "ssd/idle_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "ssd/background.h"
#include "ssd/geometry.h"
#include "ssd/ssd.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kIdlePages = 4096;
constexpr milliseconds kPeriod(2), kManyPeriods(60);

class IdleWork : public SsdTest {
 protected:
  // Half of its blocks are worth collecting.
  void SetUp() override {
    GeometryRequest request = small_device(1);
    request.spare = 0.5;
    create(request);
    ssd_ = open();
    for (uint64_t page = 0; page < kIdlePages; page += 32) write(page, 32);
    std::mt19937_64 random(1);
    while (ssd_->urgency() < Urgency::kHigh) write(random() % (kIdlePages - 24), 24);
    ssd_->reset_stats();
  }
  void write(uint64_t page, uint64_t pages) {
    put(*ssd_, page, pages, ++version_);
    std::fill_n(model_.begin() + static_cast<ptrdiff_t>(page), pages, version_);
  }
  IdleLimits limits(std::function<bool()> stop = {}) {
    return {.stop = std::move(stop), .valid_limit = 0.9};
  }
  // Whether it came true within ten seconds.
  static bool soon(const std::function<bool()>& condition) {
    for (int i = 0; i < 5000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(2));
    return condition();
  }
  uint64_t copied() { return ssd_->stats().idle_gc_bytes; }

  std::unique_ptr<Ssd> ssd_;
  std::vector<uint64_t> model_ = std::vector<uint64_t>(kIdlePages);
};

TEST_F(IdleWork, IsDoneOnceTheHostIsIdle) {
  IdleWorker worker(*ssd_, kPeriod, limits());
  std::this_thread::sleep_for(kManyPeriods);
  EXPECT_EQ(copied(), 0u) << "before start()";
  worker.start();
  EXPECT_TRUE(soon([&] { return ssd_->urgency() == Urgency::kNone; }));
  EXPECT_GT(copied(), 0u);
  EXPECT_EQ(copied(), ssd_->stats().gc_bytes);
  check(*ssd_, model_);
}

TEST_F(IdleWork, WaitsForAWholePeriodWithoutRequests) {
  IdleWorker worker(*ssd_, kPeriod, limits());
  auto request = std::make_unique<IdleWorker::Request>(worker);
  worker.start();
  std::this_thread::sleep_for(kManyPeriods);
  EXPECT_EQ(copied(), 0u);
  request.reset();
  EXPECT_TRUE(soon([&] { return copied() > 0; }));

  IdleWorker patient(*ssd_, std::chrono::hours(1), limits());
  const uint64_t before = copied();
  patient.start();  // ends at once, though its period is long
  EXPECT_GE(copied(), before);
}

TEST_F(IdleWork, GivesWayBeforeItsNextStepAndGoesOnLater) {
  std::atomic<int> steps{0};
  std::unique_ptr<IdleWorker::Request> request;
  IdleWorker* host = nullptr;
  const auto arrive = [&] {  // the second step is not taken: a request has begun
    if (steps == 1) request = std::make_unique<IdleWorker::Request>(*host);
    return ++steps < 0;
  };
  IdleWorker worker(*ssd_, kPeriod, limits(arrive));
  host = &worker;
  worker.start();
  EXPECT_TRUE(soon([&] { return steps == 2; }));
  std::this_thread::sleep_for(kManyPeriods);
  EXPECT_EQ(steps, 2);
  EXPECT_LE(copied(), 64 * kPageBytes);
  request.reset();
  EXPECT_TRUE(soon([&] { return ssd_->urgency() == Urgency::kNone; }));
  check(*ssd_, model_);
}

TEST_F(IdleWork, NothingIsTriedAgainUntilTheHostHasSentSomething) {
  std::atomic<int> steps{0};
  IdleWorker worker(*ssd_, kPeriod, limits([&] { return ++steps < 0; }));
  worker.start();
  EXPECT_TRUE(soon([&] { return ssd_->urgency() == Urgency::kNone; }));
  std::this_thread::sleep_for(kManyPeriods);
  const int done = steps;
  std::this_thread::sleep_for(kManyPeriods);
  EXPECT_EQ(steps, done);
  {
    const IdleWorker::Request request(worker);
  }
  EXPECT_TRUE(soon([&] { return steps > done; }));
}

TEST_F(IdleWork, EndsInTheMiddleOfItsWork) {
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> began{false};
    IdleWorker worker(*ssd_, milliseconds(0), limits([&] { return !(began = true); }));
    worker.start();
    EXPECT_TRUE(soon([&] { return began.load(); }));
    for (uint64_t page = 0; page < 64; page += 8) {
      const IdleWorker::Request request(worker);
      write(page + static_cast<uint64_t>(i), 8);
    }
  }
  check(*ssd_, model_);
}

}  // namespace
}  // namespace streamfs::ssd
