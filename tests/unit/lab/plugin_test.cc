// Placement policies from shared objects: docs/examples' one works, broken ones are refused.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/placement/policy.h"
#include "lab/replay/replay.h"
#include "lab/replay/workload.h"
#include "lab/workload/op_source.h"
#include "tests/support/temporary.h"

namespace streamfs::lab {
namespace {

constexpr const char* kFolder = STREAMFS_TEST_PLUGINS;

std::string plugin(const std::string& name) {
  return std::string(kFolder) + "/" + name + ".so";
}

// A log written eight pages at a time, and single pages all over the rest.
Result<ReplayResult> replay_with(const std::string& placement, bool host_only = false,
                                 uint32_t streams = 0) {
  std::vector<PageOp> ops;
  uint64_t random = 1;
  for (uint32_t i = 0; i < 100'000; ++i) {
    PageOp op;
    random = random * 6364136223846793005 + 1442695040888963407;
    op.page =
        i % 16 < 8 ? (i / 16 * 8 + i % 8) % 1024 : 1024 + static_cast<uint32_t>(random >> 33) % 256;
    op.address = op.page;
    op.request_pages = i % 16 < 8 ? 8 : 1;
    op.request_first = i % 16 < 8 ? op.page - i % 8 : op.page;
    ops.push_back(op);
  }
  Workload workload = Workload::from(std::move(ops), 1280);
  ReplayOptions options;
  options.placement = placement;
  options.policy.host_only = host_only;
  options.policy.streams = streams;
  options.policy.pages_per_block = 16;
  options.warmup = 0.3;
  return replay(workload, options);
}

TEST(Plugin, TheExampleSeparatesBySize) {
  const Result<ReplayResult> example = replay_with(plugin("placement_by_size"));
  ASSERT_TRUE(example.ok()) << example.error().message();
  EXPECT_EQ(example->classes, 7);
  EXPECT_GT(example->counters.streams[0].host_pages, 30'000u);
  EXPECT_GT(example->counters.streams[3].host_pages, 30'000u);
  EXPECT_LT(example->waf(), replay_with("nosep")->waf());
  EXPECT_EQ(replay_with(plugin("placement_by_size"), true)->classes, 6) << "host-only";
  EXPECT_EQ(replay_with(plugin("placement_by_size"), false, 2)->classes, 3);
}

TEST(Plugin, ABrokenOneIsRefusedWithItsPathAndTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"another_abi", "version 99 of the interface, this is version 1"},
      {"no_for_copy", "has no for_copy"},
      {"no_classes", "0 classes"},
      {"cannot_start", "create() gives NULL"},
      {"wrong_answer", "answers class 7"},
      {"no_symbol", "does not export streamfs_placement_policy"},
      {"not_there", "cannot open shared object file"},
  };
  for (const auto& [name, reason] : cases) {
    const Error error = replay_with(plugin(name)).error();
    EXPECT_EQ(error.code, EINVAL) << name;
    EXPECT_NE(error.context.find(plugin(name)), std::string::npos) << error.context;
    EXPECT_NE(error.context.find(reason), std::string::npos) << error.context;
  }
}

TEST(Plugin, AFileThatIsNoSharedObjectIsRefused) {
  const TemporaryDirectory directory;
  std::ofstream(directory.file("text.so")) << "not an ELF file\n";
  const Error error = replay_with(directory.file("text.so")).error();
  EXPECT_EQ(error.code, EINVAL);
  EXPECT_NE(error.context.find("text.so"), std::string::npos) << error.context;
}

}  // namespace
}  // namespace streamfs::lab
