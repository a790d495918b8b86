#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "base/result.h"
#include "base/wire/magic.h"
#include "trace/fields.h"
#include "trace/gz_input.h"
#include "trace/trace.h"

namespace streamfs::trace {
namespace {

constexpr std::string_view kVersionLine = "# trace version ";
constexpr uint64_t kMaxOffset = uint64_t{1} << 62;
constexpr uint64_t kMaxWriteBytes = uint64_t{1} << 32;
enum Column : uint8_t {
  kTs,
  kOp,
  kOffset,
  kLength,
  kVStream,
  kContext,
  kRequest,
  kPStream,
  kFilePlace
};
constexpr std::array<std::string_view, 9> kColumns = {"ts_us",        "op",      "offset_bytes",
                                                      "length_bytes", "vstream", "context",
                                                      "request",      "pstream", "file_place"};

Error other_version(const std::string& path, const std::string& version) {
  return {EINVAL, fmt::format("{}: trace version {}, this program knows version {}", path, version,
                              kTraceVersion)};
}

bool known_op(TraceOp op) {
  return op == TraceOp::kRead || op == TraceOp::kWrite || op == TraceOp::kTrim;
}

}  // namespace

std::string complaint(const TraceRecord& record) {
  if (!known_op(record.op))
    return fmt::format("operation '{}': R, W or T", static_cast<char>(record.op));
  if (record.length == 0) return "length 0";
  if (record.offset > kMaxOffset || record.length > kMaxOffset - record.offset)
    return fmt::format("offset {} + length {} overflows", record.offset, record.length);
  if (record.op == TraceOp::kWrite && record.length > kMaxWriteBytes)
    return fmt::format("length {}: at most {} in one write", record.length, kMaxWriteBytes);
  return {};
}

Result<std::unique_ptr<TraceReader>> TraceReader::open(const std::string& path) {
  SFS_ASSIGN(GzInput input, GzInput::open(path));
  std::unique_ptr<TraceReader> reader(new TraceReader(std::move(input)));
  SFS_TRY(reader->start());
  return reader;
}

Result<void> TraceReader::start() {
  for (int i = 0; i < static_cast<int>(kColumns.size()); ++i) columns_.push_back(i);
  TraceFileHeader header{};
  SFS_ASSIGN(const size_t bytes, input_.peek(&header, sizeof(header)));
  binary_ = bytes == sizeof(header) && header.magic == wire::kTraceMagic;
  if (!binary_) return {};
  if (header.version != kTraceVersion || header.record_bytes != sizeof(TraceRecord))
    return other_version(input_.path(), std::to_string(header.version));
  return input_.skip(sizeof(header));
}

Result<bool> TraceReader::next(TraceRecord& record) {
  return binary_ ? next_binary(record) : next_line(record);
}

Result<bool> TraceReader::next_binary(TraceRecord& record) {
  SFS_ASSIGN(const bool more, input_.record(&record, sizeof(record)));
  if (!more) return false;
  if (const std::string what = complaint(record); !what.empty()) return complain(what);
  return true;
}

// False for what is no record: an empty line, a comment, the header line.
Result<bool> TraceReader::is_data(std::string_view line) {
  if (line.starts_with(kVersionLine)) {
    const std::string_view version = trimmed(line.substr(kVersionLine.size()));
    if (version != std::to_string(kTraceVersion))
      return other_version(input_.path(), std::string(version));
  }
  if (line.empty() || line.starts_with('#')) return false;
  if (started_ || !line.starts_with(kColumns[kTs])) return started_ = true;
  started_ = true;
  columns_.clear();
  for_each_field(line, [&](int, std::string_view name) {
    const auto known = std::ranges::find(kColumns, name);
    columns_.push_back(known == kColumns.end() ? -1 : static_cast<int>(known - kColumns.begin()));
  });
  return false;
}

Result<bool> TraceReader::next_line(TraceRecord& record) {
  for (std::string_view line;;) {
    SFS_ASSIGN(const bool more, input_.line(line));
    if (!more) return false;
    SFS_ASSIGN(const bool data, is_data(line));
    if (!data) continue;
    SFS_TRY(parse_line(line, record));
    return true;
  }
}

Result<void> TraceReader::parse_line(std::string_view line, TraceRecord& record) const {
  record = {};
  unsigned seen = 0;
  Result<void> result;
  for_each_field(line, [&](int place, std::string_view value) {
    const auto index = static_cast<size_t>(place);
    const int column = index < columns_.size() ? columns_[index] : -1;
    if (column < 0 || !result.ok()) return;
    seen |= 1u << column;
    result = set_column(column, value, record);
  });
  SFS_TRY(std::move(result));
  for (const Column needed : {kTs, kOp, kOffset, kLength})
    if ((seen >> needed & 1) == 0) return complain(fmt::format("no {}", kColumns[needed]));
  if (const std::string what = complaint(record); !what.empty()) return complain(what);
  return {};
}

Result<void> TraceReader::set_column(int column, std::string_view value,
                                     TraceRecord& record) const {
  bool good = true;
  switch (column) {
    case kTs:
      good = parse_number(value, record.ts_us);
      break;
    case kOp:
      good = value.size() == 1;
      record.op = good ? static_cast<TraceOp>(value[0]) : record.op;
      break;
    case kOffset:
      good = parse_number(value, record.offset);
      break;
    case kLength:
      good = parse_number(value, record.length);
      break;
    case kVStream:
      good = value.empty() || parse_number(value, record.vstream);
      break;
    case kContext:
      if (!parse_number(value, record.context))
        record.context = crc32c(std::as_bytes(std::span(value.data(), value.size())));
      break;
    case kRequest:
      good = value.empty() || parse_number(value, record.request);
      break;
    case kPStream:
      good = value.empty() || parse_number(value, record.pstream);
      break;
    default:
      good = value.empty() || parse_number(value, record.file_place);
      break;
  }
  if (good) return {};
  return complain(fmt::format("{} '{}'", kColumns[static_cast<size_t>(column)], value));
}

}  // namespace streamfs::trace
