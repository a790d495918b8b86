#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "base/mutex.h"
#include "base/result.h"
#include "base/wire/magic.h"
#include "trace/trace.h"

namespace streamfs::trace {
namespace {

constexpr unsigned kZipBuffer = 256 * 1024;
constexpr std::string_view kHeaderLine =
    "ts_us,op,offset_bytes,length_bytes,vstream,context,request,pstream,file_place\n";

// How zlib opens a file of this name: quickly compressed, or as it is.
std::string mode_of(const std::string& path) {
  return path.ends_with(".gz") ? "wb1e" : "wbTe";
}

// The kernel says EEXIST of a directory as well when a new file is asked for.
Error taken(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return {EISDIR, "cannot create " + path};
  return {EEXIST, path + " exists already; name a file that does not exist yet"};
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::open(const std::string& path, Existing existing) {
  errno = 0;
  const std::string mode = mode_of(path) + (existing == Existing::kRefuse ? "x" : "");
  gzFile_s* const file = gzopen(path.c_str(), mode.c_str());
  if (file == nullptr && errno == EEXIST) return taken(path);
  return begin(file, path);
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::onto(int fd, const std::string& path) {
  errno = 0;
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  gzFile_s* file = own < 0 ? nullptr : gzdopen(own, mode_of(path).c_str());
  if (own >= 0 && file == nullptr) (void)::close(own);
  return begin(file, path);
}

Result<std::unique_ptr<TraceWriter>> TraceWriter::begin(gzFile_s* file, const std::string& path) {
  if (file == nullptr) return Error{errno != 0 ? errno : ENOMEM, "cannot create " + path};
  gzbuffer(file, kZipBuffer);
  const bool text = path.ends_with(".csv") || path.ends_with(".csv.gz");
  std::unique_ptr<TraceWriter> writer(new TraceWriter(file, text));
  const MutexLock lock(writer->mutex_);
  const TraceFileHeader header{wire::kTraceMagic, kTraceVersion, sizeof(TraceRecord)};
  if (text)
    writer->put(kHeaderLine.data(), kHeaderLine.size());
  else
    writer->put(&header, sizeof(header));
  return writer;
}

void TraceWriter::put(const void* data, size_t size) {
  if (file_ == nullptr || failed_) return;
  failed_ = gzwrite(file_.get(), data, static_cast<unsigned>(size)) != static_cast<int>(size);
}

void TraceWriter::append(const TraceRecord& record) {
  const MutexLock lock(mutex_);
  if (!text_) return put(&record, sizeof(record));
  char line[160];
  const auto end =
      fmt::format_to_n(line, sizeof(line), "{},{},{},{},{},{},{},{},{}\n", record.ts_us,
                       static_cast<char>(record.op), record.offset, record.length, record.vstream,
                       record.context, record.request, record.pstream, record.file_place);
  put(line, end.size);
}

Result<void> TraceWriter::close() {
  const MutexLock lock(mutex_);
  if (file_ != nullptr) {
    const int result = gzclose(file_.release());
    if (result != Z_OK) failed_ = true;
  }
  if (failed_) return Error{EIO, "the trace is incomplete"};
  return {};
}

}  // namespace streamfs::trace
