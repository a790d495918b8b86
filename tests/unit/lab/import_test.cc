// Traces of others: small examples, and the lines that each format refuses.
#include "lab/import/import.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <ios>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tests/support/temporary.h"
#include "trace/trace.h"

namespace streamfs::lab {
namespace {

class ImportTest : public ::testing::Test {
 protected:
  struct Read {
    std::vector<trace::TraceRecord> records;
    std::string error;
    uint64_t skipped = 0;
  };

  Read read(const std::string& format, const std::string& content,
            const ImportOptions& options = {}) {
    const std::string path = directory_.file("in");
    std::ofstream(path, std::ios::binary) << content;
    Read result;
    auto importer = make_importer(format, path, options);
    if (!importer.ok()) {
      result.error = importer.error().context;
      return result;
    }
    for (trace::TraceRecord record;;) {
      const Result<bool> more = (*importer)->next(record);
      if (!more.ok()) result.error = more.error().context;
      if (!more.ok() || !*more) break;
      result.records.push_back(record);
    }
    result.skipped = (*importer)->skipped();
    return result;
  }

  static void expect(const trace::TraceRecord& record, uint64_t ts_us, trace::TraceOp op,
                     uint64_t offset, uint64_t length) {
    EXPECT_EQ(record.ts_us, ts_us);
    EXPECT_EQ(record.op, op);
    EXPECT_EQ(record.offset, offset);
    EXPECT_EQ(record.length, length);
  }

  TemporaryDirectory directory_;
};

#define EXPECT_COMPLAINT(read, text) \
  EXPECT_NE((read).error.find(text), std::string::npos) << (read).error

TEST_F(ImportTest, FioVersion3HasTimes) {
  const Read got = read("fio",
                        "fio version 3 iolog\n0 /dev/sda add\n1 /dev/sda open\n"
                        "10 /dev/sda write 4096 8192\n20 /dev/sda read 0 4096\n"
                        "25 /dev/sda sync 0 0\n30 /dev/sda trim 4096 4096\n40 /dev/sda close\n");
  EXPECT_EQ(got.error, "");
  ASSERT_EQ(got.records.size(), 3u);
  expect(got.records[0], 10, trace::TraceOp::kWrite, 4096, 8192);
  expect(got.records[1], 20, trace::TraceOp::kRead, 0, 4096);
  expect(got.records[2], 30, trace::TraceOp::kTrim, 4096, 4096);
  EXPECT_EQ(got.skipped, 4u);
}

TEST_F(ImportTest, FioVersion2HasWaits) {
  const Read got = read("fio",
                        "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf wait 500 0\n"
                        "f write 8192 4096\nf close\n");
  EXPECT_EQ(got.error, "");
  ASSERT_EQ(got.records.size(), 2u);
  expect(got.records[1], 500, trace::TraceOp::kWrite, 8192, 4096);
}

TEST_F(ImportTest, FioGarbageIsNamed) {
  const std::string two = "fio version 2 iolog\n";
  EXPECT_COMPLAINT(read("fio", "f write 0 4096\n"), "line 1: 'f write 0 4096'");
  EXPECT_COMPLAINT(read("fio", two + "f write zero 4096\n"), "line 2: offset 'zero'");
  EXPECT_COMPLAINT(read("fio", two + "f write -4096 4096\n"), "line 2: offset '-4096'");
  EXPECT_COMPLAINT(read("fio", two + "f write 0 0\n"), "line 2: length 0");
  EXPECT_COMPLAINT(read("fio", two + "f erase 0 1\n"), "line 2: action 'erase'");
  EXPECT_COMPLAINT(read("fio", two + "f write 0 1\ng write 0 1\n"),
                   "line 3: device 'g' beside 'f'");
  const Read chosen = read("fio", two + "f write 0 1\ng write 2 1\n", {.device = "g"});
  EXPECT_EQ(chosen.error, "");
  ASSERT_EQ(chosen.records.size(), 1u);
  EXPECT_EQ(chosen.records[0].offset, 2u);
}

constexpr const char* kBlkparse =
    "  8,0    3        1     0.000000000   697  Q  WS 223490 + 8 [kjournald]\n"
    "  8,0    3        2     0.000001829   697  G  WS 223490 + 8 [kjournald]\n"
    "  8,0    3        3     0.000003141   697  P   N [kjournald]\n"
    "  8,0    3        4     0.000019000   697  D  WS 223490 + 8 [kjournald]\n"
    "  8,0    3        5     0.000021000   698  D   R 8 + 8 [cat]\n"
    "  8,0    3        6     1.500000000   699  D  DS 4096 + 2048 [fstrim]\n"
    "  8,0    3        7     1.500001000   699  D  FN [kworker]\n"
    "  8,0    3        8     1.600000000   697  C  WS 223490 + 8 [0]\n"
    "CPU3 (8,0):\n Reads Queued:           1,        4KiB\n";

TEST_F(ImportTest, BlkparseGivesWhatWasIssuedToTheDevice) {
  const Read got = read("blkparse", kBlkparse);
  EXPECT_EQ(got.error, "");
  ASSERT_EQ(got.records.size(), 3u);
  expect(got.records[0], 19, trace::TraceOp::kWrite, 223490 * 512, 4096);
  expect(got.records[1], 21, trace::TraceOp::kRead, 4096, 4096);
  expect(got.records[2], 1'500'000, trace::TraceOp::kTrim, 4096 * 512, 2048 * 512);
  EXPECT_NE(got.records[0].context, got.records[1].context);
  EXPECT_EQ(read("blkparse", kBlkparse, {.device = "", .blk_action = 'Q'}).records.size(), 1u);
}

TEST_F(ImportTest, BlkparseGarbageIsNamed) {
  EXPECT_COMPLAINT(read("blkparse", "hello world\n"), "line 1: 'hello'");
  EXPECT_COMPLAINT(read("blkparse", " 8,0 3 1 0.0 697 D W x + 8 [a]\n"), "line 1: sector 'x'");
  EXPECT_COMPLAINT(read("blkparse", " 8,0 3 1 0.0 697 D W 99999999999999999 + 8 [a]\n"),
                   "sector 99999999999999999 + 8 overflows");
  EXPECT_COMPLAINT(read("blkparse", " 8,0 3 1 0.0 697 D W 8 + 0 [a]\n"), "line 1: length 0");
  EXPECT_COMPLAINT(
      read("blkparse", " 8,0 3 1 0.0 697 D W 8 + 8 [a]\n 8,16 3 1 0.0 697 D W 8 + 8 [a]\n"),
      "line 2: device '8,16' beside '8,0'");
}

TEST_F(ImportTest, MsrTimesAreWindowsFileTimes) {
  const Read got = read("msr",
                        "128166372003061629,hm,1,Write,383496192,32768,413\n"
                        "128166372013061629,hm,1,Read,2822144,65536,1127\n");
  EXPECT_EQ(got.error, "");
  ASSERT_EQ(got.records.size(), 2u);
  expect(got.records[0], 0, trace::TraceOp::kWrite, 383496192, 32768);
  expect(got.records[1], 1'000'000, trace::TraceOp::kRead, 2822144, 65536);
  EXPECT_COMPLAINT(read("msr", "1,hm,1,Write,0\n"), "line 1: 5 fields instead of 7");
  EXPECT_COMPLAINT(read("msr", "1,hm,1,Erase,0,512,1\n"), "line 1: type 'Erase'");
  EXPECT_COMPLAINT(read("msr", "1,hm,1,Write,0,512,1\n2,hm,2,Write,0,512,1\n"),
                   "line 2: device 'hm.2' beside 'hm.1'");
}

TEST_F(ImportTest, AlibabaHasOneDeviceOfMany) {
  const std::string two =
      "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,4096,1577808144360813\n"
      "419,W,0,4096,1577808144361767\n";
  const Read got = read("alibaba", two, {.device = "419"});
  EXPECT_EQ(got.error, "");
  ASSERT_EQ(got.records.size(), 2u);
  expect(got.records[0], 0, trace::TraceOp::kWrite, 8792731648, 16384);
  expect(got.records[1], 1000, trace::TraceOp::kWrite, 0, 4096);
  EXPECT_EQ(got.skipped, 1u);
  EXPECT_COMPLAINT(read("alibaba", two), "line 2: device '725' beside '419'");
  EXPECT_COMPLAINT(read("alibaba", "419,W,18446744073709551616,1,1\n"), "line 1: offset '184467");
  EXPECT_COMPLAINT(read("alibaba", "419,W,18446744073709551615,1,1\n"), "overflows");
  EXPECT_COMPLAINT(read("alibaba", "419,X,0,1,1\n"), "line 1: opcode 'X'");
}

void put(std::string& bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
}

std::string vscsi1(uint16_t command, uint64_t lbn, uint32_t length, uint64_t ts,
                   uint16_t version = 0x100) {
  std::string bytes;
  put(bytes, 1, 4);  // serial number
  put(bytes, length, 4);
  put(bytes, 1, 4);  // segments
  put(bytes, command, 2);
  put(bytes, version, 2);
  put(bytes, lbn, 8);
  put(bytes, ts, 8);
  return bytes;
}

std::string vscsi2(uint16_t command, uint64_t lbn, uint32_t length, uint64_t ts) {
  std::string bytes;
  put(bytes, command, 2);
  put(bytes, 0x200, 2);
  put(bytes, 1, 4);
  put(bytes, length, 4);
  put(bytes, 1, 4);
  put(bytes, lbn, 8);
  put(bytes, ts, 8);
  put(bytes, 77, 8);  // response time
  return bytes;
}

TEST_F(ImportTest, VscsiOfBothVersions) {
  const Read one = read("vscsi", vscsi1(0x2a, 63, 4096, 1000) + vscsi1(0x35, 0, 0, 1001) +
                                     vscsi1(0x88, 128, 512, 3000));
  EXPECT_EQ(one.error, "");
  ASSERT_EQ(one.records.size(), 2u);
  expect(one.records[0], 0, trace::TraceOp::kWrite, 63 * 512, 4096);
  expect(one.records[1], 2000, trace::TraceOp::kRead, 128 * 512, 512);
  EXPECT_EQ(one.skipped, 1u);  // SYNCHRONIZE CACHE
  const Read two = read("vscsi", vscsi2(0x28, 8, 512, 5) + vscsi2(0x8a, 16, 1024, 9));
  EXPECT_EQ(two.error, "");
  ASSERT_EQ(two.records.size(), 2u);
  expect(two.records[1], 4, trace::TraceOp::kWrite, 16 * 512, 1024);
}

TEST_F(ImportTest, VscsiGarbageIsNamed) {
  EXPECT_COMPLAINT(read("vscsi", std::string(100, 'x')), "record 1: neither version");
  EXPECT_COMPLAINT(read("vscsi", vscsi1(0x2a, 0, 4096, 0) + "abc"), "record 2: cut off");
  EXPECT_COMPLAINT(read("vscsi", vscsi1(0x2a, 0, 4096, 0) + vscsi1(0x2a, 0, 4096, 0, 0x300)),
                   "record 2: version 0x300");
  EXPECT_COMPLAINT(read("vscsi", vscsi1(0x2a, 0, 0, 0)), "record 1: length 0");
  EXPECT_COMPLAINT(read("vscsi", vscsi1(0x2a, UINT64_MAX, 1, 0)), "record 1: lbn");
}

std::string f2fs_write(const char* seconds, const char* block, const char* type,
                       const char* event = "f2fs_submit_folio_write", const char* rw = "WRITE(S)") {
  return fmt::format(
      "   kworker/u8:3-254     [001] .....  {}: {}: dev = (259,2), ino = 3, folio_index = 0x0, "
      "oldaddr = 0x1a00, newaddr = {}, rw = {}, type = {}\n",
      seconds, event, block, rw, type);
}

TEST_F(ImportTest, F2fsBlocksThatFollowOneAnotherAreOneWriteOfTheirType) {
  const Read got = read(
      "f2fs", "# tracer: nop\n" + f2fs_write("5.5", "0x10", "WARM_DATA") +
                  f2fs_write("5.6", "0x11", "WARM_DATA") + f2fs_write("5.7", "0x12", "HOT_DATA") +
                  f2fs_write("5.8", "0x20", "WARM_DATA", "f2fs_submit_folio_bio", "READ()") +
                  f2fs_write("5.9", "0x13", "HOT_DATA", "f2fs_submit_folio_bio") +
                  f2fs_write("6.0", "0x200", "HOT_META") + f2fs_write("6.1", "0x30", "COLD_NODE") +
                  " f2fs_discard-25-256  [000] .....  7.5: f2fs_issue_discard: dev = (259,2), "
                  "blkstart = 0x10, blklen = 0x2\n");
  EXPECT_EQ(got.error, "");
  ASSERT_EQ(got.records.size(), 5u);
  expect(got.records[0], 0, trace::TraceOp::kWrite, 0x10000, 8192);
  expect(got.records[1], 200'000, trace::TraceOp::kWrite, 0x12000, 8192);
  expect(got.records[2], 500'000, trace::TraceOp::kWrite, 0x200000, 4096);
  expect(got.records[3], 600'000, trace::TraceOp::kWrite, 0x30000, 4096);
  expect(got.records[4], 2'000'000, trace::TraceOp::kTrim, 0x10000, 8192);
  const std::vector<std::pair<int, int>> tags = {{5, 1}, {4, 0}, {7, 1}, {3, 2}, {0, 0}};
  for (size_t i = 0; i < tags.size(); ++i) {
    EXPECT_EQ(got.records[i].vstream, tags[i].first) << i;
    EXPECT_EQ(got.records[i].pstream, tags[i].second) << i;
  }
  EXPECT_EQ(got.skipped, 2u);
}

TEST_F(ImportTest, F2fsGarbageIsNamed) {
  EXPECT_COMPLAINT(read("f2fs", f2fs_write("5.5", "1234", "WARM_DATA")), "newaddr '1234'");
  EXPECT_COMPLAINT(read("f2fs", f2fs_write("5.5", "0xfffffffffffff", "WARM_DATA")), "newaddr");
  EXPECT_COMPLAINT(read("f2fs", f2fs_write("x", "0x1", "WARM_DATA")), "time 'x'");
  EXPECT_COMPLAINT(read("f2fs", f2fs_write("5.5", "0x1", "TEPID_DATA")), "type 'TEPID_DATA'");
  EXPECT_COMPLAINT(read("f2fs", "CPU:1 [LOST 7 EVENTS]\n"), "too small");
  EXPECT_COMPLAINT(read("f2fs", "\n# a\nf2fs_submit_folio_wr\n"), "not of the kernel's trace");
}

TEST_F(ImportTest, UnknownFormatsListTheKnownOnes) {
  EXPECT_COMPLAINT(read("magic", ""), "vscsi");
  EXPECT_EQ(make_importer("fio", directory_.file("none"), {}).error().code, ENOENT);
}

}  // namespace
}  // namespace streamfs::lab
