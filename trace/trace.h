// Reads and writes traces of a device's requests. docs/FORMAT.md, "Traces", defines the format:
// text or binary (TraceFileHeader, then TraceRecords, little-endian), either gzipped. The reader
// detects format and compression. The writer chooses by name: text for .csv or .csv.gz, else
// binary; .gz compresses.
//
// Thread safety: the writer from any thread; the reader from one at a time. After a crash: buffered
// records are lost, and the file may end inside a record. The reader reports a cut record of a
// binary file or cut compression as an error. It takes the last line of a CSV file as whole if it
// has all required columns, so a cut can shorten that line's last value.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "trace/gz_input.h"

namespace streamfs::trace {

enum class TraceOp : uint8_t { kRead = 'R', kWrite = 'W', kTrim = 'T' };

struct TraceRecord {
  uint64_t ts_us = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t context = 0;
  uint32_t request = 0;  // equal for all parts of one request
  uint16_t vstream = 0;
  uint16_t pstream = 0;
  TraceOp op = TraceOp::kRead;
  uint8_t file_place = 0;  // of the request in its file (learning/steps.h); 0: unknown
  uint8_t reserved[2] = {};
};
static_assert(sizeof(TraceRecord) == 40);

inline constexpr uint32_t kTraceVersion = 1;

struct TraceFileHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t record_bytes;
};
static_assert(sizeof(TraceFileHeader) == 16);

enum class Existing : uint8_t { kReplace, kRefuse };

class TraceWriter {
 public:
  // Errors: those of open(2), ENOMEM; EEXIST for an existing file with kRefuse.
  static Result<std::unique_ptr<TraceWriter>> open(const std::string& path,
                                                   Existing existing = Existing::kReplace);
  // Writes to an open file; `path` chooses the format. The caller keeps its descriptor.
  static Result<std::unique_ptr<TraceWriter>> onto(int fd, const std::string& path);
  ~TraceWriter() { (void)close(); }
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // Compresses and writes in the caller's thread, to the page cache. Does nothing after close() or
  // a failed write.
  void append(const TraceRecord& record);
  // Writes the buffered records, without a sync. May be called again. Errors: EIO if any write
  // since open() failed.
  Result<void> close();

 private:
  TraceWriter(gzFile_s* file, bool text) : text_(text), file_(file) {}
  static Result<std::unique_ptr<TraceWriter>> begin(gzFile_s* file, const std::string& path);
  void put(const void* data, size_t size) SFS_REQUIRES(mutex_);

  const bool text_;
  Mutex mutex_;  // leaf
  GzFile file_ SFS_GUARDED_BY(mutex_);
  bool failed_ SFS_GUARDED_BY(mutex_) = false;
};

// Describes the first invalid value of a record; empty if all are valid.
std::string complaint(const TraceRecord& record);

class TraceReader {
 public:
  // Errors: those of open(2), ENOMEM; EINVAL for a binary file of another version, damaged
  // compression.
  static Result<std::unique_ptr<TraceReader>> open(const std::string& path);

  // Reads the next record; false at the end. Errors: EINVAL with the line (or record) and the
  // invalid value, or for a version line of another version.
  Result<bool> next(TraceRecord& record);

  // Returns EINVAL with `what` and the place of the last record.
  Error complain(const std::string& what) const { return input_.complain(what); }

 private:
  explicit TraceReader(GzInput input) : input_(std::move(input)) {}
  Result<void> start();
  Result<bool> next_binary(TraceRecord& record);
  Result<bool> next_line(TraceRecord& record);
  Result<bool> is_data(std::string_view line);
  Result<void> set_column(int column, std::string_view value, TraceRecord& record) const;
  Result<void> parse_line(std::string_view line, TraceRecord& record) const;

  GzInput input_;
  bool binary_ = false;
  bool started_ = false;      // a header or data line was read: no header line may follow
  std::vector<int> columns_;  // by place in the line: index of the known column, or −1
};

}  // namespace streamfs::trace
