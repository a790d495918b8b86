// blkparse's default output, "%D %2c %8s %5T.%9t %5p %2a %3d" and then "sector + sectors
// [process]":
//   8,0    3        1     0.000000000  697  D  WS 223490 + 8 [kjournald]
// The trace consists of one action of one device: D (issued to the driver), or the action asked
// for, such as Q for a device without a request queue. In RWBS, D discards, W writes and R reads; a
// flush (F) without data and other events are skipped. The process becomes the context. The summary
// at the end ends the trace.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/result.h"
#include "lab/import/import.h"
#include "trace/fields.h"
#include "trace/gz_input.h"
#include "trace/trace.h"

namespace streamfs::lab {
namespace {

class BlkParse final : public Importer {
 public:
  BlkParse(trace::GzInput input, const ImportOptions& options)
      : Importer(std::move(input), options.device), action_(options.blk_action) {}

  Result<bool> next(trace::TraceRecord& record) override {
    for (std::string_view line;;) {
      SFS_ASSIGN(const bool more, input_.line(line));
      if (!more || line.starts_with("CPU") || line.starts_with("Total")) return false;
      const std::vector<std::string_view> words = trace::split_spaces(line);
      if (words.empty()) continue;
      record = {};
      SFS_ASSIGN(const bool is_request, parse(words, record));
      if (is_request) return true;
    }
  }

 private:
  enum Word : uint8_t {
    kDevice,
    kCpu,
    kSequence,
    kTime,
    kPid,
    kAction,
    kRwbs,
    kSector,
    kPlus,
    kSectors
  };

  Result<bool> parse(const std::vector<std::string_view>& words, trace::TraceRecord& record) {
    if (words.size() <= kAction || words[kDevice].find(',') == std::string_view::npos)
      return input_.complain(fmt::format("'{}': not blkparse's default output", words[0]));
    double seconds = 0;
    SFS_TRY(number(words[kTime], "time", seconds));
    record.ts_us = seconds > 0 ? static_cast<uint64_t>(std::llround(seconds * 1e6)) : 0;
    const bool has_data = words.size() > kSectors && words[kPlus] == "+";
    if (words[kAction] != std::string_view(&action_, 1) || !has_data) {
      ++skipped_;
      return false;
    }
    uint64_t sector = 0, sectors = 0;
    SFS_TRY(number(words[kSector], "sector", sector));
    SFS_TRY(number(words[kSectors], "sectors", sectors));
    if (sector > kMaxSector || sectors > kMaxSector - sector)
      return input_.complain(fmt::format("sector {} + {} overflows", sector, sectors));
    const std::string_view rwbs = words[kRwbs];
    const auto has = [&](char letter) { return rwbs.find(letter) != std::string_view::npos; };
    if (has('D'))
      record.op = trace::TraceOp::kTrim;
    else if (has('W'))
      record.op = trace::TraceOp::kWrite;
    if ((!has('D') && !has('W') && !has('R')) || (sectors == 0 && has('F'))) {
      ++skipped_;
      return false;
    }
    SFS_ASSIGN(const bool ours, takes(words[kDevice]));
    if (!ours) return false;
    record.offset = sector * kSectorBytes;
    record.length = sectors * kSectorBytes;
    if (const std::string_view process = words.back(); process.starts_with('['))
      record.context = crc32c(std::as_bytes(std::span(process.data(), process.size())));
    SFS_TRY(check(record));
    return true;
  }

  const char action_;
};

}  // namespace

std::unique_ptr<Importer> import_blkparse(trace::GzInput input, const ImportOptions& options) {
  return std::make_unique<BlkParse>(std::move(input), options);
}

}  // namespace streamfs::lab
