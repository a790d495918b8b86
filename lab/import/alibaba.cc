// Alibaba block traces (Li et al., IISWC'20; github.com/alibaba/block-traces), io_traces.csv:
//   device_id,opcode,offset,length,timestamp
// opcode R or W, offset and length in bytes, timestamp in µs since 1970. Times become relative to
// the first request.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "lab/import/csv.h"
#include "lab/import/import.h"
#include "trace/gz_input.h"
#include "trace/trace.h"

namespace streamfs::lab {
namespace {

class Alibaba final : public CsvImporter {
 public:
  Alibaba(trace::GzInput input, const ImportOptions& options)
      : CsvImporter(std::move(input), options, "device_id,", 5) {}

 private:
  std::string device_of(const Fields& fields) const override { return std::string(fields[0]); }

  Result<void> parse(const Fields& fields, trace::TraceRecord& record) override {
    if (fields[1] == "W")
      record.op = trace::TraceOp::kWrite;
    else if (fields[1] != "R")
      return input_.complain(fmt::format("opcode '{}': R or W", fields[1]));
    SFS_TRY(number(fields[2], "offset", record.offset));
    SFS_TRY(number(fields[3], "length", record.length));
    SFS_TRY(number(fields[4], "timestamp", record.ts_us));
    record.ts_us = since_first(record.ts_us);
    return {};
  }
};

}  // namespace

std::unique_ptr<Importer> import_alibaba(trace::GzInput input, const ImportOptions& options) {
  return std::make_unique<Alibaba>(std::move(input), options);
}

}  // namespace streamfs::lab
