// Records reads and writes of file data, and trims, by block of the data device, for ssd-sim and
// for later study. A write is recorded when it is acknowledged, even if the write cache then drops
// it. A recording can be started and stopped while mounted.
//
// Thread safety: any thread. While nothing is recorded, record() costs one load. After a crash: the
// file lacks the records that were still buffered.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "trace/trace.h"

namespace streamfs::data {

class TraceRecorder {
 public:
  ~TraceRecorder() { (void)stop(); }
  // Creates the file and records into it. Errors: EALREADY (a trace is being recorded), EEXIST (the
  // file exists), EISDIR, those of open(2).
  Result<void> start(const std::string& path);
  // Writes out what is buffered and closes the file. Errors: EALREADY (no trace is being recorded),
  // EIO (a write since start() failed, so the trace is incomplete).
  Result<void> stop();
  bool on() const { return on_.load(std::memory_order_relaxed); }

  // Records one contiguous run of a request on one pStream, in blocks of the device. `context`: the
  // vStream that was inferred for the file; it differs from `vstream` if a hint overrides it.
  void record(trace::TraceOp op, BlockNo first, uint64_t blocks, VStreamId vstream,
              VStreamId context, uint32_t request, PStreamId pstream, uint8_t file_place = 0) {
    if (on()) append(op, first, blocks, vstream, context, request, pstream, file_place);
  }
  // Returns the number that the records of one request share.
  uint32_t next_request() { return requests_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void append(trace::TraceOp op, BlockNo first, uint64_t blocks, VStreamId vstream,
              VStreamId context, uint32_t request, PStreamId pstream, uint8_t file_place);
  std::atomic<bool> on_{false};
  std::atomic<uint32_t> requests_{1};
  Mutex mutex_;  // leaf
  // shared_ptr: a write that has seen on_ may still be appending when stop() closes the file.
  std::shared_ptr<trace::TraceWriter> writer_ SFS_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point started_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
