// Records what reaches the data device, for ssd-sim and for later study; on and off while mounted.
// Thread safety: any thread. While off, record() costs one load.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::data {

class TraceRecorder {
 public:
  TraceRecorder();
  ~TraceRecorder();
  Result<void> start(const std::string& path);  // EALREADY while one is running
  Result<void> stop();                          // ok also when none is

  // One contiguous run of one request on one pStream; op is 'R', 'W' or 'T'.
  void record(char op, BlockNo first, uint64_t blocks, VStreamId vstream, uint64_t request,
              PStreamId pstream) {
    if (on_.load(std::memory_order_relaxed)) append(op, first, blocks, vstream, request, pstream);
  }
  uint64_t next_request() { return requests_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Writer;
  void append(char op, BlockNo first, uint64_t blocks, VStreamId vstream, uint64_t request,
              PStreamId pstream);
  std::atomic<bool> on_{false};
  std::atomic<uint64_t> requests_{1};
  Mutex mutex_;  // leaf; held while a line goes into the stream's buffer
  std::unique_ptr<Writer> writer_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
