// CloudPhysics' vSCSI traces (Waldspurger et al., FAST'15), binary, little-endian, of one virtual
// disk. The high byte of `version` is 1 or 2 and says which record it is; lbn in sectors of 512
// bytes, length in bytes, time in µs. Requests are SCSI commands; those that move no data of the
// disk are skipped. Times become relative to the first record.
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/result.h"
#include "lab/import/import.h"
#include "trace/gz_input.h"
#include "trace/trace.h"

namespace streamfs::lab {
namespace {

struct RecordV1 {
  uint32_t serial, length, segments;
  uint16_t command, version;
  uint64_t lbn, ts_us;
};
static_assert(sizeof(RecordV1) == 32);

struct RecordV2 {
  uint16_t command, version;
  uint32_t serial, length, segments;
  uint64_t lbn, ts_us, response_us;
};
static_assert(sizeof(RecordV2) == 40);

// Maps operation codes of SCSI block commands.
std::optional<trace::TraceOp> op_of(uint16_t command) {
  switch (command) {
    case 0x08:  // READ(6), (10), (12), (16)
    case 0x28:
    case 0xa8:
    case 0x88:
      return trace::TraceOp::kRead;
    case 0x0a:  // WRITE(6), (10), (12), (16)
    case 0x2a:
    case 0xaa:
    case 0x8a:
    case 0x2e:  // WRITE AND VERIFY(10), (12), (16)
    case 0xae:
    case 0x8e:
    case 0x9c:  // WRITE ATOMIC(16)
      return trace::TraceOp::kWrite;
    default:
      return std::nullopt;
  }
}

class Vscsi final : public Importer {
 public:
  Vscsi(trace::GzInput input, const ImportOptions& options)
      : Importer(std::move(input), options.device) {}

  Result<bool> next(trace::TraceRecord& record) override {
    if (version_ == 0) SFS_TRY(find_version());
    for (;;) {
      std::array<char, sizeof(RecordV2)> raw{};
      SFS_ASSIGN(const bool more,
                 input_.record(raw.data(), version_ == 1 ? sizeof(RecordV1) : sizeof(RecordV2)));
      if (!more) return false;
      SFS_ASSIGN(const bool is_request, version_ == 1 ? parse<RecordV1>(raw.data(), record)
                                                      : parse<RecordV2>(raw.data(), record));
      if (is_request) return true;
    }
  }

 private:
  // Finds the record's version. The field lies at another place in each version.
  Result<void> find_version() {
    std::array<char, sizeof(RecordV2)> start{};
    SFS_ASSIGN(const size_t bytes, input_.peek(start.data(), start.size()));
    RecordV1 one{};
    RecordV2 two{};
    if (bytes >= sizeof(one)) std::memcpy(&one, start.data(), sizeof(one));
    if (bytes >= sizeof(two)) std::memcpy(&two, start.data(), sizeof(two));
    if (two.version >> 8 == 2)
      version_ = 2;
    else if (one.version >> 8 == 1)
      version_ = 1;
    if (version_ != 0) return {};
    return Error{EINVAL, fmt::format("{}: record 1: neither version 1 nor 2 of vSCSI records",
                                     input_.path())};
  }

  template <typename Record>
  Result<bool> parse(const char* raw, trace::TraceRecord& record) {
    Record scsi;
    std::memcpy(&scsi, raw, sizeof(scsi));
    if (scsi.version >> 8 != version_)
      return input_.complain(
          fmt::format("version {:#x} among records of version {}", scsi.version, version_));
    if (!first_us_) first_us_ = scsi.ts_us;
    const std::optional<trace::TraceOp> op = op_of(scsi.command);
    if (!op) {
      ++skipped_;
      return false;
    }
    if (scsi.lbn > kMaxSector) return input_.complain(fmt::format("lbn {} overflows", scsi.lbn));
    record = {};
    record.ts_us = scsi.ts_us > *first_us_ ? scsi.ts_us - *first_us_ : 0;
    record.op = *op;
    record.offset = scsi.lbn * kSectorBytes;
    record.length = scsi.length;
    SFS_TRY(check(record));
    return true;
  }

  int version_ = 0;
  std::optional<uint64_t> first_us_;
};

}  // namespace

std::unique_ptr<Importer> import_vscsi(trace::GzInput input, const ImportOptions& options) {
  return std::make_unique<Vscsi>(std::move(input), options);
}

}  // namespace streamfs::lab
