// Reads all records of a trace file into memory. Thread safety: pure function.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace streamfs::classifier {

// Returns reads, writes and trims in the order of the file. Errors: those of trace::TraceReader.
Result<std::vector<trace::TraceRecord>> trace_records(const std::string& path);

}  // namespace streamfs::classifier
