#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/checksum.h"
#include "base/result.h"
#include "emulator/trace/trace.h"

namespace streamfs::emulator {
namespace {

constexpr unsigned kBufferBytes = 256 * 1024;
constexpr size_t kMaxLine = 4096;
constexpr const char* kDamaged = "unreadable, or compressed data damaged or cut off";
constexpr uint64_t kMaxOffset = uint64_t{1} << 62;
enum Column : uint8_t { kTs, kOp, kOffset, kLength, kVStream, kContext, kRequest, kPStream };
constexpr std::array<std::string_view, 8> kColumns = {
    "ts_us", "op", "offset_bytes", "length_bytes", "vstream", "context", "request", "pstream"};

template <typename T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

template <typename Visit>
void for_each_field(std::string_view line, Visit visit) {
  for (int place = 0;; ++place) {
    const size_t comma = line.find(',');
    visit(place, trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

bool known_op(TraceOp op) {
  return op == TraceOp::kRead || op == TraceOp::kWrite || op == TraceOp::kTrim;
}

// What is wrong with the values, if anything.
std::string complaint(const TraceRecord& record) {
  if (!known_op(record.op))
    return fmt::format("operation '{}': R, W or T", static_cast<char>(record.op));
  if (record.length == 0) return "length 0";
  if (record.offset > kMaxOffset || record.length > kMaxOffset - record.offset)
    return fmt::format("offset {} + length {} overflows", record.offset, record.length);
  return {};
}

}  // namespace

Result<std::unique_ptr<TraceReader>> TraceReader::open(const std::string& path) {
  errno = 0;
  gzFile_s* file = gzopen(path.c_str(), "rbe");
  if (file == nullptr) return Error{errno != 0 ? errno : ENOMEM, "cannot open " + path};
  gzbuffer(file, kBufferBytes);
  std::unique_ptr<TraceReader> reader(new TraceReader(file, path));
  SFS_TRY(reader->start());
  return reader;
}

Error TraceReader::complain(const std::string& what) const {
  return {EINVAL, fmt::format("{}: {} {}: {}", path_, binary_ ? "record" : "line", number_, what)};
}

Result<void> TraceReader::start() {
  TraceFileHeader header{};
  line_.resize(kMaxLine);
  const int got = gzread(file_.get(), &header, sizeof(header));
  if (got < 0) return complain(kDamaged);
  binary_ = got == static_cast<int>(sizeof(header)) && header.magic == kTraceMagic;
  if (!binary_) {
    gzrewind(file_.get());
    for (int i = 0; i < static_cast<int>(kColumns.size()); ++i) columns_.push_back(i);
    SFS_ASSIGN(line_pending_, read_line());
    if (line_pending_ && read_header_line()) line_pending_ = false;
    return {};
  }
  if (header.version != kTraceVersion || header.record_bytes != sizeof(TraceRecord))
    return Error{EINVAL, fmt::format("{}: trace version {}, this program knows version {}", path_,
                                     header.version, kTraceVersion)};
  return {};
}

bool TraceReader::read_header_line() {
  const std::string_view line(line_.data(), line_size_);
  if (!line.starts_with(kColumns[kTs])) return false;
  columns_.clear();
  for_each_field(line, [&](int, std::string_view name) {
    const auto known = std::ranges::find(kColumns, name);
    columns_.push_back(known == kColumns.end() ? -1 : static_cast<int>(known - kColumns.begin()));
  });
  return true;
}

Result<bool> TraceReader::next(TraceRecord& record) {
  return binary_ ? next_binary(record) : next_line(record);
}

Result<bool> TraceReader::next_binary(TraceRecord& record) {
  ++number_;
  const int got = gzread(file_.get(), &record, sizeof(record));
  if (got == 0 && !damaged()) return false;
  if (got != static_cast<int>(sizeof(record))) return complain(damaged() ? kDamaged : "cut off");
  if (const std::string what = complaint(record); !what.empty()) return complain(what);
  return true;
}

// After a read that gave less than was asked for.
bool TraceReader::damaged() const {
  int error = Z_OK;
  gzerror(file_.get(), &error);
  return error != Z_OK && error != Z_STREAM_END;
}

Result<bool> TraceReader::read_line() {
  ++number_;
  if (gzgets(file_.get(), line_.data(), static_cast<int>(line_.size())) == nullptr) {
    if (damaged()) return complain(kDamaged);
    return false;
  }
  line_size_ = std::strlen(line_.data());
  if (line_size_ + 1 >= line_.size()) return complain("longer than any line of a trace");
  while (line_size_ > 0 && (line_[line_size_ - 1] == '\n' || line_[line_size_ - 1] == '\r'))
    --line_size_;
  return true;
}

Result<bool> TraceReader::next_line(TraceRecord& record) {
  do {
    if (!line_pending_) {
      SFS_ASSIGN(const bool more, read_line());
      if (!more) return false;
    }
    line_pending_ = false;
  } while (line_size_ == 0);
  SFS_TRY(parse_line(record));
  return true;
}

Result<void> TraceReader::parse_line(TraceRecord& record) const {
  record = {};
  unsigned seen = 0;
  Result<void> result;
  for_each_field({line_.data(), line_size_}, [&](int place, std::string_view value) {
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
      good = parse(value, record.ts_us);
      break;
    case kOp:
      good = value.size() == 1;
      record.op = good ? static_cast<TraceOp>(value[0]) : record.op;
      break;
    case kOffset:
      good = parse(value, record.offset);
      break;
    case kLength:
      good = parse(value, record.length);
      break;
    case kVStream:
      good = value.empty() || parse(value, record.vstream);
      break;
    case kContext:
      if (!parse(value, record.context))
        record.context = crc32c(std::as_bytes(std::span(value.data(), value.size())));
      break;
    case kRequest:
      good = value.empty() || parse(value, record.request);
      break;
    default:
      good = value.empty() || parse(value, record.pstream);
      break;
  }
  if (good) return {};
  return complain(fmt::format("{} '{}'", kColumns[static_cast<size_t>(column)], value));
}

}  // namespace streamfs::emulator
