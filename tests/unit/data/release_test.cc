#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "fuse-fs/placement/placement.h"
#include "tests/unit/data/rig.h"
#include "tests/unit/placement/published_model.h"

namespace streamfs::data {
namespace {

TEST(Release, TheDeviceIsToldOfPStreamsThatANewTableNamesNoMore) {
  Rig rig;
  const auto memory = rig.fs().placement().shared_memory();
  placement::PublishedModel model(memory.model_fd, memory.model_bytes);
  const auto second_passes = [&] {
    rig.clock().ms += 2000;
    rig.fs().maintenance().timer_round();
  };
  model.publish(1, [](uint32_t shape) { return shape % 2 == 0 ? 1 : 3; });
  second_passes();
  EXPECT_TRUE(rig.ram().released.empty());
  model.publish(2, [](uint32_t) { return 2; });
  second_passes();
  second_passes();
  EXPECT_EQ(rig.ram().released, (std::vector{PStreamId{1}, PStreamId{3}}));
}

}  // namespace
}  // namespace streamfs::data
