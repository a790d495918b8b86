// Imports traces of other programs. Each format is a file in lab/import/.
//
//   fio        fio iolog, version 2 and 3: every read, write and trim of one file
//   blkparse   blkparse's default text output: one action (D: issued to the driver) of one device
//   msr        MSR Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
//   alibaba    Alibaba block traces: device_id,opcode,offset,length,timestamp
//   vscsi      CloudPhysics' binary vSCSI records, version 1 and 2
//   f2fs       the kernel's trace of F2FS's events (trace_pipe), by temperature and kind of block
//
// A trace of several devices is an error unless one is chosen. All of them may be gzipped.
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
  char blk_action = 'D';
};

class Importer {
 public:
  virtual ~Importer() = default;
  // The next request; false at the end. Errors: EINVAL with line or record and value.
  virtual Result<bool> next(trace::TraceRecord& record) = 0;
  uint64_t skipped() const { return skipped_; }  // lines that are no request, or another device's

 protected:
  Importer(trace::GzInput input, std::string device)
      : input_(std::move(input)), chosen_(!device.empty()), wanted_(std::move(device)) {}

  // Whether this device is the one; EINVAL for a second one when none was chosen.
  Result<bool> takes(std::string_view device);
  // A request with a length of 0 or an end that no device has.
  Result<void> check(const trace::TraceRecord& record) const;
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

// Errors: EINVAL, an unknown format lists the known ones; what open(2) says.
Result<std::unique_ptr<Importer>> make_importer(const std::string& format, const std::string& path,
                                                const ImportOptions& options);

std::unique_ptr<Importer> import_fio(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_blkparse(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_msr(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_alibaba(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_vscsi(trace::GzInput input, const ImportOptions& options);
std::unique_ptr<Importer> import_f2fs(trace::GzInput input, const ImportOptions& options);

}  // namespace streamfs::lab
