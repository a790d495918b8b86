// Records what reaches the data device, for ssd-sim and for later study; on and off while mounted.
// Thread safety: any thread. While off, record() costs one load.
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
  Result<void> start(const std::string& path);  // EALREADY while one is running
  Result<void> stop();                          // EALREADY when none is
  bool on() const { return on_.load(std::memory_order_relaxed); }

  // One contiguous run of one request on one pStream, in blocks of the device. context: what the
  // file was created in, which a hint hides from the vStream.
  void record(trace::TraceOp op, BlockNo first, uint64_t blocks, VStreamId vstream,
              VStreamId context, uint32_t request, PStreamId pstream) {
    if (on()) {
      append(op, first, blocks, vstream, context, request, pstream);
    }
  }
  uint32_t next_request() { return requests_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void append(trace::TraceOp op, BlockNo first, uint64_t blocks, VStreamId vstream,
              VStreamId context, uint32_t request, PStreamId pstream);
  std::atomic<bool> on_{false};
  std::atomic<uint32_t> requests_{1};
  Mutex mutex_;  // leaf
  // shared_ptr: a write that has seen on_ may still be appending when stop() closes the file.
  std::shared_ptr<trace::TraceWriter> writer_ SFS_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point started_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
