// MSR Cambridge (Narayanan et al., FAST'08; SNIA IOTTA 388):
//   Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
// Timestamp in Windows filetime (100 ns), Type Read or Write, Offset and Size in bytes. Times
// become relative to the first request; requests are not strictly in order, earlier ones get 0.
#include <fmt/format.h>

#include <cstdint>
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

class Msr final : public CsvImporter {
 public:
  Msr(trace::GzInput input, const ImportOptions& options)
      : CsvImporter(std::move(input), options, "Timestamp,", 7) {}

 private:
  std::string device_of(const Fields& fields) const override {
    return fmt::format("{}.{}", fields[1], fields[2]);
  }

  Result<void> parse(const Fields& fields, trace::TraceRecord& record) override {
    uint64_t filetime = 0;
    SFS_TRY(number(fields[0], "timestamp", filetime));
    record.ts_us = since_first(filetime) / 10;
    if (fields[3] == "Write")
      record.op = trace::TraceOp::kWrite;
    else if (fields[3] != "Read")
      return input_.complain(fmt::format("type '{}': Read or Write", fields[3]));
    SFS_TRY(number(fields[4], "offset", record.offset));
    return number(fields[5], "size", record.length);
  }
};

}  // namespace

std::unique_ptr<Importer> import_msr(trace::GzInput input, const ImportOptions& options) {
  return std::make_unique<Msr>(std::move(input), options);
}

}  // namespace streamfs::lab
