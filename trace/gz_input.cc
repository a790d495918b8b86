#include "trace/gz_input.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"

namespace streamfs::trace {
namespace {

constexpr unsigned kReadBuffer = 256 * 1024;
constexpr size_t kMaxLine = 4096;
constexpr const char* kDamaged = "unreadable, or compressed data damaged or cut off";

}  // namespace

Result<GzInput> GzInput::open(const std::string& path) {
  errno = 0;
  gzFile_s* file = gzopen(path.c_str(), "rbe");
  if (file == nullptr) return Error{errno != 0 ? errno : ENOMEM, "cannot open " + path};
  gzbuffer(file, kReadBuffer);
  GzInput input(file, path);
  input.buffer_.resize(kReadBuffer);
  return input;
}

Error GzInput::complain(const std::string& what) const {
  std::string shown = what;
  std::ranges::replace_if(
      shown, [](unsigned char letter) { return letter < ' ' || letter == 127; }, '?');
  return {EINVAL, fmt::format("{}: {} {}: {}", path_, unit_, number_, shown)};
}

// After a read that gave less than was asked for.
bool GzInput::damaged() const {
  int error = Z_OK;
  gzerror(file_.get(), &error);
  return error != Z_OK && error != Z_STREAM_END;
}

// More bytes behind those that are there; none at the end.
Result<void> GzInput::refill() {
  std::memmove(buffer_.data(), buffer_.data() + from_, to_ - from_);
  to_ -= from_;
  from_ = 0;
  const auto room = static_cast<unsigned>(buffer_.size() - to_);
  const int got = gzread(file_.get(), buffer_.data() + to_, room);
  // Damage is complained of where it is reached: whole lines before it count.
  const bool has_line =
      got > 0 && std::memchr(buffer_.data() + to_, '\n', static_cast<size_t>(got)) != nullptr;
  if (!has_line && got < static_cast<int>(room) && damaged()) return complain(kDamaged);
  to_ += static_cast<size_t>(std::max(got, 0));
  return {};
}

Result<bool> GzInput::line(std::string_view& text) {
  ++number_;
  const auto rest = [&] { return std::string_view(buffer_.data() + from_, to_ - from_); };
  size_t end = rest().find('\n');
  if (end == std::string_view::npos && to_ - from_ < kMaxLine) {
    SFS_TRY(refill());
    end = rest().find('\n');
  }
  const size_t size = std::min(end, to_ - from_);
  if (size >= kMaxLine) return complain("longer than any line of a trace");
  if (size == 0 && end == std::string_view::npos) return false;
  text = rest().substr(0, size);
  from_ += end == std::string_view::npos ? size : size + 1;
  if (text.ends_with('\r')) text.remove_suffix(1);
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
  if (gzseek(file_.get(), static_cast<off_t>(size), SEEK_SET) < 0) return complain(kDamaged);
  return {};
}

}  // namespace streamfs::trace
