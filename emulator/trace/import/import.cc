#include "emulator/trace/import.h"

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
#include "emulator/trace/fields.h"
#include "emulator/trace/gz_input.h"
#include "emulator/trace/trace.h"

namespace streamfs::emulator {

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

Result<void> Importer::check(const TraceRecord& record) const {
  if (const std::string what = complaint(record); !what.empty()) return input_.complain(what);
  return {};
}

template <typename T>
Result<void> Importer::number(std::string_view text, const char* name, T& value) const {
  if (parse_number(text, value)) return {};
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
  using Make = std::unique_ptr<Importer> (*)(GzInput, const ImportOptions&);
  constexpr Make kMakers[] = {import_fio,     import_blkparse, import_msr,
                              import_alibaba, import_vscsi,    import_f2fs};
  for (size_t i = 0; i < import_formats().size(); ++i) {
    if (import_formats()[i] != format) continue;
    SFS_ASSIGN(GzInput input, GzInput::open(path));
    return kMakers[i](std::move(input), options);
  }
  return Error{EINVAL, fmt::format("no format '{}'; there are {}", format,
                                   fmt::join(import_formats(), ", "))};
}

}  // namespace streamfs::emulator
