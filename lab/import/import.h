// Imports traces of other programs. Each format is a file in lab/import/.
//
//   fio        fio iolog, version 2 and 3: every read, write and trim of one file
//   blkparse   blkparse's default text output: one action (D: issued to the driver) of one device
//   msr        MSR Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
//   alibaba    Alibaba block traces: device_id,opcode,offset,length,timestamp
//   vscsi      CloudPhysics' binary vSCSI records, version 1 and 2
//   f2fs       the kernel's trace of F2FS's events (trace_pipe), by temperature and kind of block
//
// A trace of several devices is an error unless one is chosen. All formats may be gzipped.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/gz_input.h"
#include "trace/trace.h"

namespace streamfs::lab {

struct ImportOptions {
  std::string device;  // fio: file name; blkparse, f2fs: major,minor; msr: host.disk; alibaba: id
  char blk_action = 'D';  // blkparse: the action that counts as a request
};

class Importer {
 public:
  virtual ~Importer() = default;
  // Reads the next request; returns false at the end. Errors: EINVAL with line or record and value.
  virtual Result<bool> next(trace::TraceRecord& record) = 0;
  uint64_t skipped() const { return skipped_; }  // lines that are no request, or another device's

 protected:
  Importer(trace::GzInput input, std::string device)
      : input_(std::move(input)), chosen_(!device.empty()), wanted_(std::move(device)) {}

  // Returns whether this device is the chosen one, or the first one seen if none was chosen, and
  // counts a request of another device as skipped. Errors: EINVAL for a second device when none was
  // chosen.
  Result<bool> takes(std::string_view device);
  // Errors: EINVAL for an invalid value (trace::complaint()).
  Result<void> check(const trace::TraceRecord& record) const;
  // Parses a number. Errors: EINVAL, with `name`.
  template <typename T>
  Result<void> number(std::string_view text, const char* name, T& value) const;

  static constexpr uint64_t kSectorBytes = 512;
  static constexpr uint64_t kMaxSector = uint64_t{1} << 53;  // in bytes: 2^62

  trace::GzInput input_;
  uint64_t skipped_ = 0;

 private:
  const bool chosen_;
  std::string wanted_;  // chosen, or the first seen
};

const std::vector<std::string>& import_formats();

// Errors: EINVAL for an unknown format, with the known ones; those of open(2).
Result<std::unique_ptr<Importer>> make_importer(const std::string& format, const std::string& path,
                                                const ImportOptions& options);

std::unique_ptr<Importer> import_fio(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_blkparse(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_msr(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_alibaba(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_vscsi(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_f2fs(trace::GzInput input, const ImportOptions& options);

}  // namespace streamfs::lab
