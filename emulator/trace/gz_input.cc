#include "emulator/trace/gz_input.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace streamfs::emulator {
namespace {

constexpr unsigned kBufferBytes = 256 * 1024;
constexpr size_t kMaxLine = 4096;
constexpr const char* kDamaged = "unreadable, or compressed data damaged or cut off";

}  // namespace

Result<GzInput> GzInput::open(const std::string& path) {
  errno = 0;
  gzFile_s* file = gzopen(path.c_str(), "rbe");
  if (file == nullptr) return Error{errno != 0 ? errno : ENOMEM, "cannot open " + path};
  gzbuffer(file, kBufferBytes);
  GzInput input(file, path);
  input.line_.resize(kMaxLine);
  return input;
}

Error GzInput::complain(const std::string& what) const {
  return {EINVAL, fmt::format("{}: {} {}: {}", path_, unit_, number_, what)};
}

// After a read that gave less than was asked for.
bool GzInput::damaged() const {
  int error = Z_OK;
  gzerror(file_.get(), &error);
  return error != Z_OK && error != Z_STREAM_END;
}

Result<bool> GzInput::line(std::string_view& text) {
  ++number_;
  if (gzgets(file_.get(), line_.data(), static_cast<int>(line_.size())) == nullptr) {
    if (damaged()) return complain(kDamaged);
    return false;
  }
  text = line_.data();
  if (text.size() + 1 >= line_.size()) return complain("longer than any line of a trace");
  if (!text.ends_with('\n') && damaged()) return complain(kDamaged);
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return true;
}

Result<bool> GzInput::record(void* data, size_t size) {
  ++number_;
  unit_ = "record";
  const int got = gzread(file_.get(), data, static_cast<unsigned>(size));
  if (got == static_cast<int>(size)) return true;
  if (damaged()) return complain(kDamaged);
  if (got == 0) return false;
  return complain("cut off");
}

Result<size_t> GzInput::peek(void* data, size_t size) {
  const int got = gzread(file_.get(), data, static_cast<unsigned>(size));
  if (got < 0) return complain(kDamaged);
  gzrewind(file_.get());
  return static_cast<size_t>(got);
}

Result<void> GzInput::skip(size_t size) {
  if (gzseek(file_.get(), static_cast<z_off_t>(size), SEEK_SET) < 0) return complain(kDamaged);
  return {};
}

}  // namespace streamfs::emulator
