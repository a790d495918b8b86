// Traces as page operations: what they widen to, what they are refused for, and that a second pass
// is the first once more.
#include "lab/workload/trace_source.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/replay/workload.h"
#include "lab/workload/lifetimes.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"
#include "tests/support/temporary.h"
#include "trace/trace.h"

namespace streamfs::lab {
namespace {

constexpr uint64_t kPage = 4096;

class TraceSourceTest : public ::testing::Test {
 protected:
  struct Line {
    trace::TraceOp op;
    uint64_t offset, length;
    uint32_t request = 0;
    uint16_t pstream = 0;
  };

  std::string put(const std::string& name, const std::vector<Line>& lines) {
    const std::string path = directory_.file(name);
    auto writer = trace::TraceWriter::open(path);
    for (const Line& line : lines)
      (*writer)->append({.offset = line.offset,
                         .length = line.length,
                         .context = 9,
                         .request = line.request,
                         .vstream = 7,
                         .pstream = line.pstream,
                         .op = line.op});
    return path;
  }

  static std::vector<PageOp> pass(OpSource& source) {
    std::vector<PageOp> ops;
    for (;;) {
      const auto batch = source.next();
      EXPECT_TRUE(batch.ok()) << batch.error().message();
      if (!batch.ok() || batch->empty()) return ops;
      ops.insert(ops.end(), batch->begin(), batch->end());
    }
  }

  static std::vector<PageOp> ops_of(std::vector<std::string> paths,
                                    const LoadOptions& options = {}) {
    auto source = TraceSource::open(std::move(paths), options);
    EXPECT_TRUE(source.ok());
    return pass(**source);
  }

  static Error error_of(const std::string& path, const LoadOptions& options) {
    return Workload::load({path}, options).error();
  }

  TemporaryDirectory directory_;
};

TEST_F(TraceSourceTest, WritesWidenAndTrimsShrinkToWholePages) {
  const std::string path = put("t.csv", {{trace::TraceOp::kWrite, 4000, 200, 0, 2},
                                         {trace::TraceOp::kRead, 1 << 20, 4096},
                                         {trace::TraceOp::kTrim, 1, 8190},
                                         {trace::TraceOp::kTrim, 0, 4096}});
  const std::vector<PageOp> ops = ops_of({path});
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0].pstream, 2);
  EXPECT_EQ(ops[0].vstream, 7);
  EXPECT_EQ(ops[0].context, 9u);
  EXPECT_EQ(ops[1].page, 1u);
  EXPECT_EQ(ops[2].kind, OpKind::kTrim);
  EXPECT_EQ(ops[2].page, 0u);
  EXPECT_EQ(ops_of({path}, {.ignore_trims = true}).size(), 2u);
  EXPECT_EQ(Workload::load({path}, {.shift_bytes = 96})->facts().writes, 1u);
  EXPECT_EQ(Workload::load({path}, {.max_writes = 1})->facts().writes, 2u);
}

TEST_F(TraceSourceTest, ReadsAreThereIfAskedForAndOnlyOfPagesThatWereWritten) {
  const std::string path = put("t.csv", {{trace::TraceOp::kWrite, 2 * kPage, 3 * kPage},
                                         {trace::TraceOp::kRead, kPage + 1, 2 * kPage, 4},
                                         {trace::TraceOp::kWrite, 0, kPage, 4},
                                         {trace::TraceOp::kRead, 9 * kPage, kPage}});
  EXPECT_EQ(ops_of({path}).size(), 4u);
  const std::vector<PageOp> ops = ops_of({path}, {.reads = true});
  ASSERT_EQ(ops.size(), 6u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ops[3 + i].kind, OpKind::kRead);
    EXPECT_EQ(ops[3 + i].page, ssd::Lpn{i});
    EXPECT_EQ(ops[3 + i].address, 2u + i);
    EXPECT_EQ(ops[3 + i].request_first, 1u);
    EXPECT_EQ(ops[3 + i].request_pages, 3u);
  }
  EXPECT_EQ(ops[5].kind, OpKind::kWrite);
  EXPECT_EQ(Workload::load({path}, {.reads = true})->facts().peak_live_pages, 4u);
}

TEST_F(TraceSourceTest, OffsetsOutsideTheDeviceAreRefusedWithTheirLine) {
  const std::string path =
      put("t.csv", {{trace::TraceOp::kWrite, 0, kPage}, {trace::TraceOp::kWrite, 4000, 200}});
  const Error below = error_of(path, {.shift_bytes = -1});
  EXPECT_EQ(below.code, EINVAL);
  EXPECT_NE(below.context.find("line 2: offset 0 with a shift of -1"), std::string::npos);
  const Error beyond = error_of(path, {.device_bytes = kPage});
  EXPECT_EQ(beyond.code, EINVAL);
  EXPECT_NE(beyond.context.find("line 3: offset 4000 + length 200"), std::string::npos);
  EXPECT_TRUE(Workload::load({path}, {.device_bytes = 4200}).ok());
  EXPECT_NE(error_of(path, {.shift_bytes = INT64_MAX}).context.find("line 3: offset 4000 with"),
            std::string::npos);
  const std::string huge = put("huge.csv", {{trace::TraceOp::kWrite, 0, uint64_t{1} << 50}});
  EXPECT_NE(error_of(huge, {}).context.find("line 2: length 1125899906842624"), std::string::npos);
}

TEST_F(TraceSourceTest, PagesAreNumberedByFirstAppearanceAndKeepTheirPlaceInTheRequest) {
  const std::string path = put("t.csv", {{trace::TraceOp::kWrite, 1000 * kPage, 2 * kPage},
                                         {trace::TraceOp::kWrite, 10 * kPage, kPage},
                                         {trace::TraceOp::kWrite, 999 * kPage, 3 * kPage}});
  const std::vector<PageOp> ops = ops_of({path});
  ASSERT_EQ(ops.size(), 6u);
  const std::vector<ssd::Lpn> pages = {0, 1, 2, 3, 0, 1};
  for (size_t i = 0; i < ops.size(); ++i) EXPECT_EQ(ops[i].page, pages[i]);
  EXPECT_EQ(ops[5].address, 1001u);
  EXPECT_EQ(ops[5].request_first, 999u);
  EXPECT_EQ(ops[5].request_pages, 3u);
}

TEST_F(TraceSourceTest, PiecesOfARequestAreOneRequest) {
  const std::string path = put("t.trace.gz", {{trace::TraceOp::kWrite, 0, 2 * kPage, 5},
                                              {trace::TraceOp::kRead, 0, kPage, 6},
                                              {trace::TraceOp::kWrite, 80 * kPage, kPage, 5},
                                              {trace::TraceOp::kWrite, 40 * kPage, kPage, 6},
                                              {trace::TraceOp::kWrite, 42 * kPage, kPage, 0},
                                              {trace::TraceOp::kWrite, 43 * kPage, kPage, 0}});
  const std::vector<PageOp> ops = ops_of({path});
  ASSERT_EQ(ops.size(), 6u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ops[i].request_pages, 3u);
    EXPECT_EQ(ops[i].address - ops[i].request_first, i);
  }
  for (uint32_t i = 3; i < 6; ++i) EXPECT_EQ(ops[i].request_pages, 1u);
}

TEST_F(TraceSourceTest, AnotherPassAndAnotherFormatAreTheSame) {
  std::mt19937 random(3);
  std::vector<Line> lines;
  for (uint32_t i = 0; i < 5000; ++i)
    lines.push_back({random() % 5 == 0 ? trace::TraceOp::kTrim : trace::TraceOp::kWrite,
                     random() % 100'000 * 512, 1 + random() % 50'000, i / 3});
  const auto source = TraceSource::open({put("a.csv", lines)}, {});
  const std::vector<PageOp> first = pass(**source);
  ASSERT_TRUE((*source)->rewind().ok());
  const auto same = [&](const std::vector<PageOp>& ops) {
    ASSERT_EQ(ops.size(), first.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      ASSERT_EQ(ops[i].page, first[i].page);
      ASSERT_EQ(ops[i].kind, first[i].kind);
      ASSERT_EQ(ops[i].request_first, first[i].request_first);
    }
  };
  same(pass(**source));
  for (const char* name : {"a.csv.gz", "a.trace", "a.trace.gz"}) same(ops_of({put(name, lines)}));
}

TEST_F(TraceSourceTest, SeveralTracesAreOneAfterTheOtherOnOneDevice) {
  const std::string a = put("a.csv", {{trace::TraceOp::kWrite, 8 * kPage, kPage}});
  const std::string b = put("b.trace.gz", {{trace::TraceOp::kWrite, 9 * kPage, kPage},
                                           {trace::TraceOp::kWrite, 8 * kPage, kPage}});
  const std::vector<PageOp> ops = ops_of({a, b});
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[2].page, 0u);
  EXPECT_EQ(Workload::load({a, directory_.file("none")}, {}).error().code, ENOENT);
}

TEST_F(TraceSourceTest, ATrimOfEverythingIsAsLongAsWhatIsKnown) {
  const std::string path = put("t.csv", {{trace::TraceOp::kWrite, uint64_t{1} << 50, kPage},
                                         {trace::TraceOp::kWrite, 0, kPage},
                                         {trace::TraceOp::kTrim, 0, uint64_t{1} << 61}});
  const std::vector<PageOp> ops = ops_of({path});
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[2].page, 1u);
  EXPECT_EQ(ops[3].page, 0u);
}

TEST(LifetimeHistogram, IsExactForShortLivesAndNearForLongOnes) {
  LifetimeHistogram lives;
  for (const uint64_t life : {uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 40, kNever})
    lives.add(life);
  EXPECT_EQ(lives.at(0), 1u);
  EXPECT_EQ(lives.at(1), 127u);
  EXPECT_EQ(lives.at(2), 128u);
  EXPECT_EQ(lives.at(3), uint64_t{1} << 40);
  EXPECT_EQ(lives.at(4), kNever);
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t life = random() >> (random() % 60) | 1;
    LifetimeHistogram one;
    one.add(life);
    EXPECT_LE(one.at(0), life);
    EXPECT_GE(static_cast<double>(one.at(0)), static_cast<double>(life) * 63 / 64);
  }
}

TEST(LifetimeFile, KeepsTheDeathOfEachWrite) {
  Result<LifetimeFile> file = LifetimeFile::create(1'000'000);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->death_of(999'999), kNever);
  file->set(999'999, 17);
  file->set(3, uint64_t{1} << 33);
  EXPECT_EQ(file->death_of(999'999), 1'000'016u);
  EXPECT_EQ(file->death_of(3), kNever);
}

}  // namespace
}  // namespace streamfs::lab
