#include "fuse-fs/data/trace_recorder.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "trace/trace.h"

namespace streamfs::data {

Result<void> TraceRecorder::start(const std::string& path) {
  const MutexLock lock(mutex_);
  if (writer_ != nullptr)
    return Error{EALREADY, "a trace is being recorded already; stop that one first"};
  SFS_ASSIGN(writer_, trace::TraceWriter::open(path, trace::Existing::kRefuse));
  started_ = std::chrono::steady_clock::now();
  on_.store(true, std::memory_order_relaxed);
  return {};
}

Result<void> TraceRecorder::stop() {
  std::shared_ptr<trace::TraceWriter> writer;
  {
    const MutexLock lock(mutex_);
    on_.store(false, std::memory_order_relaxed);
    writer = std::exchange(writer_, nullptr);
  }
  if (writer == nullptr) return Error{EALREADY, "no trace is being recorded"};
  return writer->close();
}

void TraceRecorder::append(trace::TraceOp op, BlockNo first, uint64_t blocks, VStreamId vstream,
                           VStreamId context, uint32_t request, PStreamId pstream,
                           uint8_t file_place) {
  std::shared_ptr<trace::TraceWriter> writer;
  std::chrono::steady_clock::time_point started;
  {
    const MutexLock lock(mutex_);
    writer = writer_;
    started = started_;
  }
  if (writer == nullptr) return;
  const auto elapsed = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - started);
  writer->append({.ts_us = static_cast<uint64_t>(elapsed.count()),
                  .offset = first.value * kBlockSize,
                  .length = blocks * kBlockSize,
                  .context = context.value,
                  .request = request,
                  .vstream = vstream.value,
                  .pstream = pstream.value,
                  .op = op,
                  .file_place = file_place});
}

}  // namespace streamfs::data
