// The kernel's trace of F2FS's own events, as trace_pipe of tracefs prints them:
//   PROCESS-PID [CPU] FLAGS SECONDS: f2fs_submit_folio_write: dev = (259,2), ..., newaddr = 0x1601,
//       rw = WRITE(S), type = WARM_NODE
// f2fs_submit_folio_write is a block written out of place, f2fs_submit_folio_bio a block written in
// place (or read), and f2fs_issue_discard a discard. Before Linux 6.15 the names of the former two
// ended in page_write and page_bio. Other events and headers are skipped. Events that the kernel
// dropped (LOST) are an error: such a trace differs from the device's requests.
//
// Adjacent blocks of 4 KiB of one type are one write. vStreams: 1 hot, 2 warm, 3 cold node; 4 hot,
// 5 warm, 6 cold data; 7 the filesystem's metadata. pStreams are those of Yong 2021, table II: hot
// 0, warm and metadata 1, cold 2.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "lab/import/import.h"
#include "trace/fields.h"
#include "trace/gz_input.h"
#include "trace/trace.h"

namespace streamfs::lab {
namespace {

struct BlockType {
  std::string_view name;
  uint16_t vstream, pstream;
};

constexpr BlockType kTypes[] = {{"HOT_NODE", 1, 0}, {"WARM_NODE", 2, 1}, {"COLD_NODE", 3, 2},
                                {"HOT_DATA", 4, 0}, {"WARM_DATA", 5, 1}, {"COLD_DATA", 6, 2},
                                {"HOT_META", 7, 1}};
constexpr std::array<std::string_view, 4> kWrites = {
    "f2fs_submit_folio_write: ", "f2fs_submit_folio_bio: ", "f2fs_submit_page_write: ",
    "f2fs_submit_page_bio: "};
constexpr std::string_view kDiscard = "f2fs_issue_discard: ";
constexpr uint64_t kMostBlocks = 512;  // in one write

class F2fs final : public Importer {
 public:
  F2fs(trace::GzInput input, const ImportOptions& options)
      : Importer(std::move(input), options.device) {}

  Result<bool> next(trace::TraceRecord& record) override {
    for (std::string_view line;;) {
      SFS_ASSIGN(const bool more, input_.line(line));
      if (!more) break;
      trace::TraceRecord one;
      SFS_ASSIGN(const bool is_request, parse(line, one));
      if (!is_request || joined(one)) continue;
      std::swap(one, pending_);
      if (one.length == 0) continue;
      record = one;
      return true;
    }
    record = std::exchange(pending_, {});
    return record.length != 0;
  }

 private:
  // Returns the text after "NAME = ", up to the next comma or the end.
  static std::string_view field(std::string_view text, std::string_view name) {
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      std::string_view rest = text.substr(at + name.size());
      if (!rest.starts_with(" = ")) continue;
      rest.remove_prefix(3);
      return rest.substr(0, rest.find(", "));
    }
    return {};
  }

  Result<uint64_t> bytes(std::string_view event, std::string_view name) const {
    std::string_view text = field(event, name);
    uint64_t blocks = 0;
    if (!text.starts_with("0x") || !trace::parse_number(text.substr(2), blocks, 16) ||
        blocks > kMaxSector / (kBlockSize / kSectorBytes))
      return input_.complain(fmt::format("{} '{}'", name, text));
    return blocks * kBlockSize;
  }

  // Returns the time at the end of the text before an event.
  Result<uint64_t> time_before(std::string_view head) {
    while (head.ends_with(' ') || head.ends_with(':')) head.remove_suffix(1);
    double seconds = 0;
    SFS_TRY(number(head.substr(head.rfind(' ') + 1), "time", seconds));
    const auto us = seconds > 0 ? static_cast<uint64_t>(std::llround(seconds * 1e6)) : 0;
    if (!began_) began_ = us;
    return us - std::min(us, *began_);
  }

  struct Event {
    std::string_view text;
    size_t at;  // of its name in the line
    bool discards;
  };

  // "... [CPU] FLAGS SECONDS: EVENT: ..."
  static bool is_event(std::string_view line) {
    const size_t cpu = line.find("] ");
    return cpu != line.npos && line.find(": ", cpu) != line.npos;
  }
  static bool is_header(std::string_view line) {
    return line.starts_with('#') || trace::trimmed(line).empty();
  }

  static std::optional<Event> find_event(std::string_view line) {
    if (const size_t at = line.find(kDiscard); at != line.npos)
      return Event{line.substr(at + kDiscard.size()), at, true};
    for (const std::string_view name : kWrites) {
      if (const size_t at = line.find(name); at != line.npos)
        return Event{line.substr(at + name.size()), at, false};
    }
    return std::nullopt;
  }

  Result<bool> parse(std::string_view line, trace::TraceRecord& record) {
    if (line.find("[LOST ") != line.npos)
      return input_.complain(fmt::format("'{}': the kernel's buffer was too small", line));
    if (!is_event(line) && !is_header(line))
      return input_.complain(fmt::format("'{}': not of the kernel's trace", line));
    const std::optional<Event> event = find_event(line);
    if (!event || (!event->discards && !field(event->text, "rw").starts_with("WRITE"))) {
      ++skipped_;
      return false;
    }
    SFS_ASSIGN(const bool ours, takes(device_of(event->text)));
    if (!ours) return false;
    SFS_ASSIGN(record.ts_us, time_before(line.substr(0, event->at)));
    if (event->discards)
      SFS_TRY(discard(event->text, record));
    else
      SFS_TRY(write(event->text, record));
    SFS_TRY(check(record));
    return true;
  }

  // Returns "259,2" of "(259,2)".
  static std::string_view device_of(std::string_view event) {
    std::string_view text = field(event, "dev");
    if (text.starts_with('(')) text.remove_prefix(1);
    if (text.ends_with(')')) text.remove_suffix(1);
    return text;
  }

  Result<void> discard(std::string_view event, trace::TraceRecord& record) const {
    record.op = trace::TraceOp::kTrim;
    SFS_ASSIGN(record.offset, bytes(event, "blkstart"));
    SFS_ASSIGN(record.length, bytes(event, "blklen"));
    return {};
  }

  Result<void> write(std::string_view event, trace::TraceRecord& record) const {
    record.op = trace::TraceOp::kWrite;
    record.length = kBlockSize;
    SFS_ASSIGN(record.offset, bytes(event, "newaddr"));
    const std::string_view type = field(event, "type");
    const auto* const known = std::ranges::find(kTypes, type, &BlockType::name);
    if (known == std::end(kTypes)) return input_.complain(fmt::format("type '{}'", type));
    record.vstream = known->vstream;
    record.pstream = known->pstream;
    return {};
  }

  // Joins a write to the pending one, if they are adjacent.
  bool joined(const trace::TraceRecord& one) {
    if (one.op != trace::TraceOp::kWrite || pending_.op != trace::TraceOp::kWrite ||
        pending_.length == 0 || one.vstream != pending_.vstream ||
        one.offset != pending_.offset + pending_.length ||
        pending_.length == kMostBlocks * kBlockSize)
      return false;
    pending_.length += one.length;
    return true;
  }

  trace::TraceRecord pending_;     // length 0: there is none
  std::optional<uint64_t> began_;  // µs
};

}  // namespace

std::unique_ptr<Importer> import_f2fs(trace::GzInput input, const ImportOptions& options) {
  return std::make_unique<F2fs>(std::move(input), options);
}

}  // namespace streamfs::lab
