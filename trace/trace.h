// Traces of what a device was sent: written by the filesystem's recorder, read by ssd-sim.
//
// CSV, a header line optional (with one, columns are found by name):
//   ts_us,op,offset_bytes,length_bytes[,vstream,context,request[,pstream]]
// op is R, W or T; offsets and lengths in bytes; a context that is not a number is hashed. Empty
// lines and those that start with # are skipped; "# trace version N" says which version it is.
// Binary: TraceFileHeader, then TraceRecords, little-endian. Either may be gzipped; the reader
// finds out by itself, the writer goes by the name: .csv or .csv.gz, else binary, .gz compresses.
//
// Thread safety: append() from any thread; the reader from one at a time. Crash: what was still
// buffered is lost, and the file may end inside a record, which the reader reports as an error.
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
  uint8_t reserved[3] = {};
};
static_assert(sizeof(TraceRecord) == 40);

inline constexpr uint64_t kTraceMagic = 0x3130435254534653;  // "SFSTRC01"
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
  // Errors: what open(2) says; EEXIST for a file that is there and not to be replaced.
  static Result<std::unique_ptr<TraceWriter>> open(const std::string& path,
                                                   Existing existing = Existing::kReplace);
  // The same into a file that is open; the descriptor stays the caller's.
  static Result<std::unique_ptr<TraceWriter>> onto(int fd, const std::string& path);
  ~TraceWriter() { (void)close(); }
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // Never waits for more than the host's page cache. Does nothing after close().
  void append(uint64_t ts_us, TraceOp op, uint64_t offset, uint64_t length, uint16_t vstream,
              uint32_t context, uint32_t request, uint16_t pstream);
  // Writes out what is buffered; the first error since open, if any. May be called again.
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

// What is wrong with a record's values; empty if nothing is.
std::string complaint(const TraceRecord& record);

class TraceReader {
 public:
  // Errors: what open(2) says; EINVAL for another version.
  static Result<std::unique_ptr<TraceReader>> open(const std::string& path);

  // False at the end. Errors: EINVAL with the line (or record) and the value that is wrong.
  Result<bool> next(TraceRecord& record);

  // EINVAL: what is wrong with the record last read, and where that is.
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
  bool started_ = false;      // a line of data has been seen: no header line may follow
  std::vector<int> columns_;  // by place in the line: index of the known column, or −1
};

}  // namespace streamfs::trace
