// Traces: what is written is read back; what is not a trace is refused with its line.
#include "trace/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tests/support/temporary.h"

namespace streamfs::trace {
namespace {

class TraceTest : public ::testing::Test {
 protected:
  std::string put(const std::string& text) {
    const std::string path = directory_.file("t.csv");
    FILE* file = fopen(path.c_str(), "w");
    fwrite(text.data(), 1, text.size(), file);
    fclose(file);
    return path;
  }

  // All records, or the error's sentence.
  static std::pair<std::vector<TraceRecord>, std::string> read(const std::string& path) {
    std::vector<TraceRecord> records;
    auto reader = TraceReader::open(path);
    if (!reader.ok()) return {records, reader.error().context};
    for (TraceRecord record;;) {
      const Result<bool> more = (*reader)->next(record);
      if (!more.ok()) return {records, more.error().context};
      if (!*more) return {records, ""};
      records.push_back(record);
    }
  }

  TemporaryDirectory directory_;
};

TEST_F(TraceTest, EveryFormatGivesBackWhatWasAppended) {
  for (const char* name : {"a.csv", "a.csv.gz", "a.trace", "a.trace.gz"}) {
    const std::string path = directory_.file(name);
    {
      auto writer = TraceWriter::open(path);
      ASSERT_TRUE(writer.ok());
      for (uint32_t i = 0; i < 10'000; ++i)
        (*writer)->append({.ts_us = i,
                           .offset = uint64_t{i} << 30,
                           .length = i + 1,
                           .context = i * 7,
                           .request = i / 2,
                           .vstream = static_cast<uint16_t>(i),
                           .pstream = static_cast<uint16_t>(i % 8),
                           .op = i % 3 == 0 ? TraceOp::kTrim : TraceOp::kWrite,
                           .file_place = static_cast<uint8_t>(i)});
      ASSERT_TRUE((*writer)->close().ok());
      (*writer)->append({.length = 1});  // after close: nothing
    }
    const auto [records, error] = read(path);
    EXPECT_EQ(error, "");
    ASSERT_EQ(records.size(), 10'000u) << name;
    const TraceRecord& r = records[4321];
    EXPECT_EQ(r.offset, uint64_t{4321} << 30);
    EXPECT_EQ(r.length, 4322u);
    EXPECT_EQ(r.context, 4321u * 7);
    EXPECT_EQ(r.request, 4321u / 2);
    EXPECT_EQ(r.pstream, 4321 % 8);
    EXPECT_EQ(r.file_place, 4321 % 256);
    EXPECT_EQ(r.op, TraceOp::kWrite);
  }
}

TEST_F(TraceTest, AppendsOfSeveralThreadsDoNotMix) {
  const std::string path = directory_.file("a.csv.gz");
  {
    auto writer = TraceWriter::open(path);
    ASSERT_TRUE(writer.ok());
    std::vector<std::thread> threads;
    for (uint16_t t = 1; t <= 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 5000; ++i)
          (*writer)->append({.ts_us = t,
                             .offset = t * 4096u,
                             .length = t,
                             .context = t,
                             .request = t,
                             .vstream = t,
                             .pstream = t,
                             .op = TraceOp::kWrite,
                             .file_place = static_cast<uint8_t>(t)});
      });
    for (std::thread& thread : threads) thread.join();
  }
  const auto [records, error] = read(path);
  EXPECT_EQ(error, "");
  ASSERT_EQ(records.size(), 20'000u);
  for (const TraceRecord& r : records) {
    ASSERT_EQ(r.offset, r.vstream * 4096u);
    for (const uint64_t field : {r.ts_us, r.length, uint64_t{r.context}, uint64_t{r.request},
                                 uint64_t{r.pstream}, uint64_t{r.file_place}}) {
      ASSERT_EQ(field, r.vstream);
    }
  }
}

TEST_F(TraceTest, TheHeaderLineIsOptionalAndNamesColumnsInAnyOrder) {
  EXPECT_EQ(read(put("5,W,4096,8192\n\n6,T,0,1")).first.size(), 2u);
  const auto [records, error] =
      read(put("ts_us,op,offset_bytes,length_bytes,pstream,colour\n5,W,4096,8192,3,red\r\n"));
  EXPECT_EQ(error, "");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].pstream, 3);
  EXPECT_EQ(read(put("1,W,0,1,2,postgres,4\n")).first[0].context,
            read(put("1,W,0,1,2,postgres,9\n")).first[0].context);
  EXPECT_TRUE(read(put("")).first.empty());
  EXPECT_EQ(
      read(put("# by hand\n\nts_us,op,offset_bytes,length_bytes\n# x\n5,W,0,1\n")).first.size(),
      1u);
}

TEST_F(TraceTest, TextMaySayItsVersion) {
  EXPECT_EQ(read(put("# trace version 1\n5,W,0,1\n")).first.size(), 1u);
  EXPECT_NE(read(put("# trace version 2\n5,W,0,1\n")).second.find("trace version 2"),
            std::string::npos);
}

TEST_F(TraceTest, ACompressedTraceThatIsCutOffIsRefused) {
  for (const char* name : {"a.csv.gz", "a.trace.gz"}) {
    const std::string path = directory_.file(name);
    {
      auto writer = TraceWriter::open(path);
      for (uint32_t i = 0; i < 5000; ++i)
        (*writer)->append({.ts_us = i,
                           .offset = uint64_t{i} * 7919 % 4096 * 4096,
                           .length = 4096,
                           .context = i,
                           .op = TraceOp::kWrite});
    }
    const auto whole = static_cast<off_t>(std::filesystem::file_size(path));
    for (const off_t size : {whole - 1, whole - 9, whole / 2}) {  // each cuts more
      ASSERT_EQ(truncate(path.c_str(), size), 0);
      EXPECT_NE(read(path).second.find("cut off"), std::string::npos) << name << " " << size;
    }
  }
}

TEST_F(TraceTest, GarbageIsRefusedWithItsLineAndValue) {
  const auto complaint = [&](const std::string& line) {
    return read(put("ts_us,op,offset_bytes,length_bytes\n1,W,0,4096\n" + line + "\n")).second;
  };
  EXPECT_NE(complaint("2,X,0,4096").find("line 3: operation 'X'"), std::string::npos);
  EXPECT_NE(complaint("2,W,-5,4096").find("line 3: offset_bytes '-5'"), std::string::npos);
  EXPECT_NE(complaint("2,W,0,0").find("length 0"), std::string::npos);
  EXPECT_NE(complaint("2,W,0").find("no length_bytes"), std::string::npos);
  EXPECT_NE(complaint("2,W,9223372036854775807,9").find("overflows"), std::string::npos);
  EXPECT_NE(complaint("2,W,99999999999999999999,9").find("offset_bytes"), std::string::npos);
  EXPECT_NE(complaint(std::string(9000, 'x')).find("line 3"), std::string::npos);
  EXPECT_NE(complaint("hello").find("line 3"), std::string::npos);
}

TEST_F(TraceTest, CutOffAndOtherVersionsAreRefused) {
  const std::string path = directory_.file("a.trace");
  {
    auto writer = TraceWriter::open(path);
    (*writer)->append({.ts_us = 1, .length = 1, .op = TraceOp::kWrite});
  }
  ASSERT_EQ(truncate(path.c_str(), sizeof(TraceFileHeader) + 20), 0);
  EXPECT_NE(read(path).second.find("record 1: cut off"), std::string::npos);
  FILE* file = fopen(path.c_str(), "r+");
  fseek(file, 8, SEEK_SET);
  fputc(2, file);
  fclose(file);
  EXPECT_NE(read(path).second.find("version 2"), std::string::npos);
  EXPECT_EQ(TraceReader::open(directory_.file("none")).error().code, ENOENT);
}

}  // namespace
}  // namespace streamfs::trace
