// Choi: NVMe Streams under fio and RocksDB.
#include <gtest/gtest.h>

#include "tests/figures/figure_checks.h"

namespace streamfs::lab::figures {
namespace {

TEST(Choi, FourStreamsMoreThanDoubleLifetimeAndReadsAreSteadier) {
  const FigureRows rows("choi-fio");
  EXPECT_GT(rows["WAF without ÷ with streams (lifetime)"], 2);
  EXPECT_LE(rows["WAF, streams on"], 1.02);
  EXPECT_LT(rows["read IOPS, deviation ÷ mean, streams on"],
            rows["read IOPS, deviation ÷ mean, streams off"]);
  EXPECT_GT(rows["throughput, on ÷ off"], 1);
}

TEST(Choi, AStreamALevelSavesSomeOfAnLsmTreesCopies) {
  const FigureRows rows("choi-rocksdb");
  EXPECT_GT(rows["off, WAF"], 1.3);
  EXPECT_GT(rows["a stream a level, lifetime"], 10);
  EXPECT_GT(rows["a stream a level, throughput"], 0);
}

TEST(Choi, AStreamALevelGainsMostIfSeveralTablesShareABlockAndTheTreeIsLarge) {
  const FigureRows rows("choi-rocksdb-settings");
  EXPECT_GT(rows["the most lifetime of all settings"], 35);
  EXPECT_LE(rows["tree 60 %, tables a block: 1, off"], 1.02);
  EXPECT_LE(rows["tree 70 %, tables a block: 16, a stream a level"], 1.02);
  EXPECT_GT(rows["tree 70 %, tables a block: 16, off"], rows["tree 60 %, tables a block: 16, off"]);
  EXPECT_GT(rows["tree 73 %, tables a block: 32, a stream a level"],
            rows["tree 60 %, tables a block: 32, a stream a level"]);
}

}  // namespace
}  // namespace streamfs::lab::figures
