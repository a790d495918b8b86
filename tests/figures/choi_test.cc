// Choi: NVMe Streams under fio and RocksDB.
#include <gtest/gtest.h>

#include "emulator/figures/figure.h"
#include "tests/figures/figure_checks.h"

namespace streamfs::emulator::figures {
namespace {

TEST(Choi, FourStreamsMoreThanDoubleLifetimeAndReadsAreSteadier) {
  const FigureRun run = small_run("choi-fio", 1);
  EXPECT_GT(row(run, "WAF without ÷ with streams (lifetime)"), 2);
  EXPECT_LE(row(run, "WAF, streams on"), 1.02);
  EXPECT_LT(row(run, "read IOPS, deviation ÷ mean, streams on"),
            row(run, "read IOPS, deviation ÷ mean, streams off"));
  EXPECT_GT(row(run, "throughput, on ÷ off"), 1);
}

TEST(Choi, AStreamALevelSavesSomeOfAnLsmTreesCopies) {
  const FigureRun run = small_run("choi-rocksdb", 1);
  EXPECT_GT(row(run, "off, WAF"), 1.3);
  EXPECT_GT(row(run, "a stream a level, lifetime"), 10);
  EXPECT_GT(row(run, "a stream a level, throughput"), 0);
}

}  // namespace
}  // namespace streamfs::emulator::figures
