// MSR Cambridge (Narayanan et al., FAST'08; SNIA IOTTA 388):
//   Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
// Timestamp in Windows filetime (100 ns), Type Read or Write, Offset and Size in bytes. Times
// become relative to the first request; requests are not strictly in order, earlier ones get 0.
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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

class Msr final : public Importer {
 public:
  Msr(GzInput input, const ImportOptions& options) : Importer(std::move(input), options.device) {}

  Result<bool> next(TraceRecord& record) override {
    for (std::string_view line;;) {
      SFS_ASSIGN(const bool more, input_.line(line));
      if (!more) return false;
      if (line.empty() || line.starts_with("Timestamp,")) continue;
      const std::vector<std::string_view> fields = split_commas(line);
      if (fields.size() != 7)
        return input_.complain(fmt::format("{} fields instead of 7", fields.size()));
      SFS_ASSIGN(const bool ours, takes(fmt::format("{}.{}", fields[1], fields[2])));
      if (!ours) continue;
      SFS_TRY(parse(fields, record));
      return true;
    }
  }

 private:
  Result<void> parse(const std::vector<std::string_view>& fields, TraceRecord& record) {
    record = {};
    uint64_t filetime = 0;
    SFS_TRY(number(fields[0], "timestamp", filetime));
    if (!first_) first_ = filetime;
    record.ts_us = filetime > *first_ ? (filetime - *first_) / 10 : 0;
    if (fields[3] == "Write")
      record.op = TraceOp::kWrite;
    else if (fields[3] != "Read")
      return input_.complain(fmt::format("type '{}': Read or Write", fields[3]));
    SFS_TRY(number(fields[4], "offset", record.offset));
    SFS_TRY(number(fields[5], "size", record.length));
    return check(record);
  }

  std::optional<uint64_t> first_;
};

}  // namespace

std::unique_ptr<Importer> import_msr(GzInput input, const ImportOptions& options) {
  return std::make_unique<Msr>(std::move(input), options);
}

}  // namespace streamfs::emulator
