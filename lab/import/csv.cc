#include "lab/import/csv.h"

#include <fmt/format.h>

#include <string_view>

#include "base/result.h"
#include "trace/fields.h"
#include "trace/trace.h"

namespace streamfs::lab {

Result<bool> CsvImporter::next(trace::TraceRecord& record) {
  for (std::string_view line;;) {
    SFS_ASSIGN(const bool more, input_.line(line));
    if (!more) return false;
    if (line.empty() || line.starts_with(header_)) continue;
    const Fields fields = trace::split_commas(line);
    if (fields.size() != columns_)
      return input_.complain(fmt::format("{} fields instead of {}", fields.size(), columns_));
    SFS_ASSIGN(const bool ours, takes(device_of(fields)));
    if (!ours) continue;
    record = {};
    SFS_TRY(parse(fields, record));
    SFS_TRY(check(record));
    return true;
  }
}

}  // namespace streamfs::lab
