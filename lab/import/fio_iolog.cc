// fio's iolog (write_iolog), first line "fio version 2 iolog" or "fio version 3 iolog":
//   v2  FILE add|open|close            v3  µs FILE add|open|close
//       FILE ACTION OFFSET LENGTH          µs FILE ACTION OFFSET LENGTH
// ACTION is read, write, trim, sync, datasync, or in v2 wait, whose OFFSET is µs to wait: there
// time is the sum of the waits.
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/import/import.h"
#include "trace/fields.h"
#include "trace/gz_input.h"
#include "trace/trace.h"

namespace streamfs::lab {
namespace {

class FioIolog final : public Importer {
 public:
  FioIolog(trace::GzInput input, const ImportOptions& options)
      : Importer(std::move(input), options.device) {}

  Result<bool> next(trace::TraceRecord& record) override {
    for (std::string_view line;;) {
      SFS_ASSIGN(const bool more, input_.line(line));
      if (!more) return false;
      if (version_ == 0) {
        SFS_TRY(read_version(line));
        continue;
      }
      std::vector<std::string_view> words = trace::split_spaces(line);
      if (words.empty()) continue;
      record = {};
      if (version_ == 3) {
        SFS_TRY(number(words[0], "timestamp", clock_us_));
        words.erase(words.begin());
      }
      SFS_ASSIGN(const bool is_request, parse(words, record));
      if (is_request) return true;
    }
  }

 private:
  Result<void> read_version(std::string_view line) {
    version_ = line == "fio version 2 iolog" ? 2 : line == "fio version 3 iolog" ? 3 : 0;
    if (version_ != 0) return {};
    return input_.complain(
        fmt::format("'{}': not an fio iolog of version 2 or 3", line.substr(0, 40)));
  }

  Result<bool> parse(const std::vector<std::string_view>& words, trace::TraceRecord& record) {
    if (words.size() != 2 && words.size() != 4)
      return input_.complain("not FILE ACTION [OFFSET LENGTH]");
    const std::string_view action = words[1];
    if (words.size() == 2) {
      if (action != "add" && action != "open" && action != "close")
        return input_.complain(fmt::format("action '{}'", action));
      ++skipped_;
      return false;
    }
    SFS_TRY(number(words[2], "offset", record.offset));
    SFS_TRY(number(words[3], "length", record.length));
    if (action == "wait" && version_ == 2) clock_us_ += record.offset;
    if (action == "wait" || action == "sync" || action == "datasync") {
      ++skipped_;
      return false;
    }
    if (action == "write")
      record.op = trace::TraceOp::kWrite;
    else if (action == "trim")
      record.op = trace::TraceOp::kTrim;
    else if (action != "read")
      return input_.complain(fmt::format("action '{}'", action));
    record.ts_us = clock_us_;
    SFS_ASSIGN(const bool ours, takes(words[0]));
    if (!ours) return false;
    SFS_TRY(check(record));
    return true;
  }

  int version_ = 0;
  uint64_t clock_us_ = 0;
};

}  // namespace

std::unique_ptr<Importer> import_fio(trace::GzInput input, const ImportOptions& options) {
  return std::make_unique<FioIolog>(std::move(input), options);
}

}  // namespace streamfs::lab
