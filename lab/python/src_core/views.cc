#include "lab/python/src_core/views.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/wire/record_check.h"
#include "base/wire/telemetry.h"
#include "learning/lifetime_model.h"
#include "learning/write_view.h"

namespace streamfs::lab::python {
namespace {

constexpr float kPagesAMib = 256;

ViewRow row_of(const learning::WriteView& w) {
  const auto mib = static_cast<float>(w.page) / kPagesAMib;
  ViewRow out{mib, static_cast<float>(w.vstream)};
  const std::array<uint8_t, kViewFields.size() - 2> rest = {
      w.length,        w.offset,   w.tail,       w.run,        w.overlap,
      w.overlaps_mean, w.age,      w.last,       w.before,     w.trim_length,
      w.alive,         w.left_age, w.right_age,  w.left_last,  w.right_last,
      w.mean_64k,      w.mean_1m,  w.trimmed_1m, w.trimmed_16m};
  std::ranges::copy(rest, out.begin() + 2);
  return out;
}

}  // namespace

std::vector<ViewRow> Views::feed(std::span<const wire::TelemetryRecord> records) {
  std::vector<ViewRow> out;
  for (const wire::TelemetryRecord& record : records) {
    if (!believable(record, wire::kCapacityBlocksMax)) continue;
    if (record.kind == wire::TelemetryKind::kTrim) {
      model_.trim(record.block, record.pages);
      continue;
    }
    const learning::Request request{.page = record.block,
                                    .pages = record.pages,
                                    .whole_pages = record.request_pages,
                                    .offset = record.request_offset,
                                    .vstream = record.vstream};
    model_.write(request, [&](float, bool) { out.push_back(row_of(model_.seen())); });
  }
  return out;
}

}  // namespace streamfs::lab::python
