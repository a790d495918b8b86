#include "classifierd/src_core/trace_records.h"

#include <string>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace streamfs::classifier {

Result<std::vector<trace::TraceRecord>> trace_records(const std::string& path) {
  SFS_ASSIGN(const auto reader, trace::TraceReader::open(path));
  std::vector<trace::TraceRecord> records;
  for (trace::TraceRecord record;;) {
    SFS_ASSIGN(const bool more, reader->next(record));
    if (!more) return records;
    records.push_back(record);
  }
}

}  // namespace streamfs::classifier
