// Shapes, presets and scales: what is derived, and what is refused.
#include "ssd/geometry.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "ssd/presets.h"

namespace streamfs::ssd {
namespace {

std::string refusal(const GeometryRequest& request) {
  const Result<Geometry> planned = plan_geometry(request);
  return planned.ok() ? "" : planned.error().context;
}

TEST(NandShape, TheWordlineAndTheSuperblockFollowFromTheShape) {
  const NandShape tlc{
      .channels = 4, .chips = 2, .dies = 2, .planes = 4, .wordlines = 100, .cell = Cell::kTlc};
  EXPECT_EQ(tlc.die_count(), 16u);
  EXPECT_EQ(tlc.wordline_pages(), 48u);  // 4 planes × 3 flash pages × 4 logical pages
  EXPECT_EQ(tlc.block_pages(), 16u * 48 * 100);
  const NandShape slc{.channels = 1, .chips = 1, .dies = 1, .planes = 2, .wordlines = 10};
  EXPECT_EQ(slc.wordline_pages(), 8u);
}

TEST(NandShape, APlainDeviceGetsAShapeOfItsBlockSize) {
  for (const uint32_t pages : {16u, 32u, 48u, 256u, 1024u, 65536u}) {
    const Result<Geometry> geometry =
        plan_geometry({.user_bytes = uint64_t{64} << 30, .pages_per_block = pages});
    ASSERT_TRUE(geometry.ok());
    EXPECT_EQ(geometry->nand.block_pages(), pages);
    EXPECT_EQ(geometry->wordline_pages, 16u);
  }
}

TEST(Presets, EveryOneIsPossibleAndSoIsItsSixtyFourth) {
  for (const Preset& preset : presets()) {
    const Result<Geometry> whole = plan_geometry(preset.request);
    ASSERT_TRUE(whole.ok()) << preset.name << ": " << whole.error().message();
    Result<GeometryRequest> request = find_preset(preset.name);
    ASSERT_TRUE(request.ok());
    ASSERT_TRUE(scale_down(*request, "1/64").ok());
    const Result<Geometry> small = plan_geometry(*request);
    ASSERT_TRUE(small.ok()) << preset.name << ": " << small.error().message();
    EXPECT_EQ(small->nand.die_count(), whole->nand.die_count());
    EXPECT_EQ(small->pages_per_block * 64, whole->pages_per_block);
    EXPECT_NEAR(small->blocks, whole->blocks, 1) << preset.name;
    EXPECT_NEAR(small->user_pages, whole->user_pages / 64, 1);
  }
}

TEST(Presets, UnknownNamesAndScalesAreRefusedWithTheirValue) {
  EXPECT_NE(find_preset("magic").error().context.find("'magic'"), std::string::npos);
  EXPECT_NE(find_preset("magic").error().context.find("consumer-tlc"), std::string::npos);
  GeometryRequest request = *find_preset("embedded-slc");
  for (const char* scale : {"", "64", "2/64", "1/0", "1/x", "1/3", "1/64 ", "1/1024", "1/-2"})
    EXPECT_NE(scale_down(request, scale).error().context.find(scale), std::string::npos) << scale;
  EXPECT_EQ(request.nand->wordlines, 128u);
  GeometryRequest plain{.user_bytes = 1 << 30};
  EXPECT_FALSE(scale_down(plain, "1/64").ok());
}

TEST(Geometry, ImpossibleShapesAreRefused) {
  GeometryRequest request = *find_preset("embedded-slc");
  EXPECT_EQ(refusal(request), "");
  const auto refused = [&](auto change) {
    GeometryRequest changed = request;
    change(changed);
    return refusal(changed).find("impossible geometry") == 0;
  };
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.nand->channels = 0; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.nand->wordlines = 0; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.nand->planes = 17; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.nand->channels = 65535; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.nand->cell = static_cast<Cell>(4); }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.nand->wordlines = 1u << 30; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.pages_per_block = 256; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.map_unit_bytes = 64 << 10; }));  // > a wordline
  EXPECT_FALSE(refused([](GeometryRequest& r) { r.map_unit_bytes = 32 << 10; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.map_unit_bytes = 12 << 10; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.map_unit_bytes = 100; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.map_unit_bytes = 128 << 10; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.bad_blocks = 1000; }));
  EXPECT_TRUE(refused([](GeometryRequest& r) { r.failures.program_per_billion = 2'000'000'000; }));
}

}  // namespace
}  // namespace streamfs::ssd
