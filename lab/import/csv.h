// The base of importers of comma-separated traces: lines, the optional header, the chosen device
// and times since the first request. Thread safety: none, as every Importer. Crash: memory only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/import/import.h"
#include "trace/gz_input.h"
#include "trace/trace.h"

namespace streamfs::lab {

class CsvImporter : public Importer {
 public:
  Result<bool> next(trace::TraceRecord& record) final;

 protected:
  using Fields = std::vector<std::string_view>;

  // `header`: how a line starts that names the columns; all such lines are skipped. Not empty, and
  // lives as long as the importer. `columns`: a line with another number of fields is EINVAL.
  CsvImporter(trace::GzInput input, const ImportOptions& options, std::string_view header,
              size_t columns)
      : Importer(std::move(input), options.device), header_(header), columns_(columns) {}

  virtual std::string device_of(const Fields& fields) const = 0;
  // `record` is empty. EINVAL: the field that is wrong.
  virtual Result<void> parse(const Fields& fields, trace::TraceRecord& record) = 0;

  // Returns the ticks since the first call; 0 for earlier ticks.
  uint64_t since_first(uint64_t ticks) {
    if (!first_) first_ = ticks;
    return ticks > *first_ ? ticks - *first_ : 0;
  }

 private:
  const std::string_view header_;
  const size_t columns_;
  std::optional<uint64_t> first_;
};

}  // namespace streamfs::lab
