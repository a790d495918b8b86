#include "lab/import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trace/fields.h"
#include "trace/gz_input.h"
#include "trace/trace.h"

namespace streamfs::lab {

Result<bool> Importer::takes(std::string_view device) {
  if (wanted_.empty()) wanted_ = device;
  if (device == wanted_) return true;
  if (chosen_) {
    ++skipped_;
    return false;
  }
  return input_.complain(
      fmt::format("device '{}' beside '{}': choose one with --device", device, wanted_));
}

Result<void> Importer::check(const trace::TraceRecord& record) const {
  if (const std::string what = trace::complaint(record); !what.empty())
    return input_.complain(what);
  return {};
}

template <typename T>
Result<void> Importer::number(std::string_view text, const char* name, T& value) const {
  if (trace::parse_number(text, value)) return {};
  return input_.complain(fmt::format("{} '{}'", name, text));
}
template Result<void> Importer::number(std::string_view, const char*, uint64_t&) const;
template Result<void> Importer::number(std::string_view, const char*, double&) const;

const std::vector<std::string>& import_formats() {
  static const std::vector<std::string> names = {"fio",     "blkparse", "msr",
                                                 "alibaba", "vscsi",    "f2fs"};
  return names;
}

Result<std::unique_ptr<Importer>> make_importer(const std::string& format, const std::string& path,
                                                const ImportOptions& options) {
  using Make = std::unique_ptr<Importer> (*)(trace::GzInput, const ImportOptions&);
  constexpr Make kMakers[] = {import_fio,     import_blkparse, import_msr,
                              import_alibaba, import_vscsi,    import_f2fs};
  for (size_t i = 0; i < import_formats().size(); ++i) {
    if (import_formats()[i] != format) continue;
    SFS_ASSIGN(trace::GzInput input, trace::GzInput::open(path));
    return kMakers[i](std::move(input), options);
  }
  return Error{EINVAL, fmt::format("no format '{}'; there are {}", format,
                                   fmt::join(import_formats(), ", "))};
}

}  // namespace streamfs::lab
