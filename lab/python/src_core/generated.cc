#include "lab/python/src_core/generated.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/or_throw.h"
#include "base/wire/telemetry.h"
#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab::python {
namespace {

using lab::OpKind;
using lab::PageOp;
using wire::TelemetryKind;
using wire::TelemetryRecord;

bool goes_on(const TelemetryRecord& record, const PageOp& op) {
  const bool trim = op.kind == OpKind::kTrim;
  if ((record.kind == TelemetryKind::kTrim) != trim) return false;
  if (record.block + record.pages != op.address) return false;
  return trim || (record.vstream == op.vstream && record.request_pages == op.request_pages &&
                  record.block - record.request_offset == op.request_first);
}

TelemetryRecord record_of(const PageOp& op) {
  TelemetryRecord record{};
  record.block = op.address;
  record.pages = 1;
  record.request_pages = op.request_pages;
  record.request_offset = op.address - op.request_first;
  record.vstream = op.vstream;
  record.kind = op.kind == OpKind::kTrim ? TelemetryKind::kTrim : TelemetryKind::kNew;
  return record;
}

}  // namespace

Generated generated(const std::string& name, uint32_t pages, uint64_t writes, uint64_t seed) {
  const lab::GeneratorKind& kind = *or_throw(lab::find_generator(name));
  const auto source =
      or_throw(lab::make_generator(name, {.pages = pages, .writes = writes, .seed = seed}));
  Generated out{.records = {}, .starts_full = kind.prefill};
  for (;;) {
    const auto batch = or_throw(source->next());
    if (batch.empty()) return out;
    for (const PageOp& op : batch) {
      if (!out.records.empty() && goes_on(out.records.back(), op)) {
        ++out.records.back().pages;
      } else if (op.kind != OpKind::kRead) {
        out.records.push_back(record_of(op));
      }
    }
  }
}

std::vector<std::string> generator_names() {
  std::vector<std::string> names;
  for (const lab::GeneratorKind& kind : lab::generators()) names.push_back(kind.name);
  return names;
}

}  // namespace streamfs::lab::python
