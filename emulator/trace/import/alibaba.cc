// Alibaba block traces (Li et al., IISWC'20; github.com/alibaba/block-traces), io_traces.csv:
//   device_id,opcode,offset,length,timestamp
// opcode R or W, offset and length in bytes, timestamp in µs since 1970. Times become relative to
// the first request.
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "emulator/trace/fields.h"
#include "emulator/trace/gz_input.h"
#include "emulator/trace/import.h"
#include "emulator/trace/trace.h"

namespace streamfs::emulator {
namespace {

class Alibaba final : public Importer {
 public:
  Alibaba(GzInput input, const ImportOptions& options)
      : Importer(std::move(input), options.device) {}

  Result<bool> next(TraceRecord& record) override {
    for (std::string_view line;;) {
      SFS_ASSIGN(const bool more, input_.line(line));
      if (!more) return false;
      if (line.empty() || line.starts_with("device_id,")) continue;
      const std::vector<std::string_view> fields = split_commas(line);
      if (fields.size() != 5)
        return input_.complain(fmt::format("{} fields instead of 5", fields.size()));
      SFS_ASSIGN(const bool ours, takes(fields[0]));
      if (!ours) continue;
      SFS_TRY(parse(fields, record));
      return true;
    }
  }

 private:
  Result<void> parse(const std::vector<std::string_view>& fields, TraceRecord& record) {
    record = {};
    if (fields[1] == "W")
      record.op = TraceOp::kWrite;
    else if (fields[1] != "R")
      return input_.complain(fmt::format("opcode '{}': R or W", fields[1]));
    SFS_TRY(number(fields[2], "offset", record.offset));
    SFS_TRY(number(fields[3], "length", record.length));
    SFS_TRY(number(fields[4], "timestamp", record.ts_us));
    if (!first_) first_ = record.ts_us;
    record.ts_us = record.ts_us > *first_ ? record.ts_us - *first_ : 0;
    return check(record);
  }

  std::optional<uint64_t> first_;
};

}  // namespace

std::unique_ptr<Importer> import_alibaba(GzInput input, const ImportOptions& options) {
  return std::make_unique<Alibaba>(std::move(input), options);
}

}  // namespace streamfs::emulator
