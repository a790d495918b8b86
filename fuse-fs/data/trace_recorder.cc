#include "fuse-fs/data/trace_recorder.h"

#include <array>
#include <chrono>
#include <cstdio>

namespace streamfs::data {

// One line a run: ts_us,op,offset,length,vstream,context,request,pstream.
struct TraceRecorder::Writer {
  explicit Writer(FILE* stream) : file(stream) {}
  ~Writer() {
    if (file != nullptr) std::fclose(file);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  uint64_t elapsed_us() const {
    const auto elapsed = std::chrono::steady_clock::now() - started;
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
  }

  FILE* file;
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
};

TraceRecorder::TraceRecorder() = default;
TraceRecorder::~TraceRecorder() {
  (void)stop();
}

Result<void> TraceRecorder::start(const std::string& path) {
  const MutexLock lock(mutex_);
  if (writer_ != nullptr) return Error{EALREADY, "a trace is being recorded"};
  FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return Error{errno, path};
  writer_ = std::make_unique<Writer>(file);
  std::fputs("ts_us,op,offset,length,vstream,context,request,pstream\n", file);
  on_.store(true, std::memory_order_relaxed);
  return {};
}

Result<void> TraceRecorder::stop() {
  const MutexLock lock(mutex_);
  on_.store(false, std::memory_order_relaxed);
  if (writer_ == nullptr) return {};
  FILE* file = writer_->file;
  writer_->file = nullptr;
  writer_.reset();
  const bool whole = std::ferror(file) == 0;
  if (std::fclose(file) != 0 || !whole) return Error{EIO, "the trace is not whole"};
  return {};
}

void TraceRecorder::append(char op, BlockNo first, uint64_t blocks, VStreamId vstream,
                           uint64_t request, PStreamId pstream) {
  const MutexLock lock(mutex_);
  if (writer_ == nullptr) return;
  std::fprintf(writer_->file, "%lu,%c,%lu,%lu,%u,%u,%lu,%u\n", writer_->elapsed_us(), op,
               first.value * kBlockSize, blocks * kBlockSize, vstream.value, vstream.value, request,
               pstream.value);
}

}  // namespace streamfs::data
