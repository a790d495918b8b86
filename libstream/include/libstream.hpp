// libstream for C++11 and later: libstream.h with types. Header only; the contract, thread safety
// and what a crash leaves are libstream.h's. Nothing throws but the makers of a VStream, for names
// and numbers that cannot be one.
#ifndef STREAMFS_LIBSTREAM_HPP
#define STREAMFS_LIBSTREAM_HPP

#include <libstream.h>

#include <cstdint>
#include <string>
#include <system_error>

namespace libstream {

enum class Life {
  kNotSet = STREAM_LIFE_NOT_SET,
  kNone = STREAM_LIFE_NONE,
  kShort = STREAM_LIFE_SHORT,
  kMedium = STREAM_LIFE_MEDIUM,
  kLong = STREAM_LIFE_LONG,
  kExtreme = STREAM_LIFE_EXTREME
};

// How a call ended. To ignore it is always allowed.
class Outcome {
 public:
  explicit Outcome(int code) noexcept : code_(code) {}
  bool honoured() const noexcept { return code_ == STREAM_HONOURED; }
  bool not_streamfs() const noexcept { return code_ == STREAM_NOT_STREAMFS; }
  bool passed_on() const noexcept { return code_ == STREAM_PASSED_ON; }
  // Empty unless it could not be done.
  std::error_code error() const noexcept {
    return {code_ < 0 ? -code_ : 0, std::generic_category()};
  }
  int code() const noexcept { return code_; }

 private:
  int code_;
};

class VStream {
 public:
  static VStream named(const std::string& name) {
    VStream out;
    check(stream_open(&out.raw_, name.c_str()), "the name of a vStream");
    return out;
  }
  static VStream numbered(unsigned number) {
    VStream out;
    check(stream_open_number(&out.raw_, number), "the number of a vStream");
    return out;
  }
  static VStream for_bytes(std::uint64_t bytes) {
    VStream out;
    check(stream_open_bytes(&out.raw_, bytes), "a lifetime in bytes");
    return out;
  }
  static VStream for_seconds(std::uint64_t seconds) {
    VStream out;
    check(stream_open_seconds(&out.raw_, seconds), "a lifetime in seconds");
    return out;
  }
  std::string name() const { return raw_.name; }

  Outcome tag(int fd) const noexcept { return Outcome(stream_tag_fd(fd, &raw_)); }
  Outcome tag(const std::string& path) const noexcept {
    return Outcome(stream_tag_path(path.c_str(), &raw_));
  }
  Outcome tag_directory(const std::string& path) const noexcept {
    return Outcome(stream_tag_directory(path.c_str(), &raw_));
  }
  Outcome tag_tree(const std::string& path, std::uint64_t* labelled = nullptr) const noexcept {
    return Outcome(stream_tag_tree(path.c_str(), &raw_, labelled));
  }
  Outcome measure(const std::string& path, stream_info& out) const noexcept {
    return Outcome(stream_measure_path(path.c_str(), &raw_, &out));
  }

 private:
  VStream() : raw_() {}
  static void check(int code, const char* what) {
    if (code < 0) throw std::system_error(-code, std::generic_category(), what);
  }
  stream_vstream raw_;
};

inline Outcome hint(int fd, Life life) noexcept {
  return Outcome(stream_hint_fd(fd, static_cast<stream_life>(life)));
}
inline Outcome hint(const std::string& path, Life life) noexcept {
  return Outcome(stream_hint_path(path.c_str(), static_cast<stream_life>(life)));
}
inline Outcome clear(int fd) noexcept {
  return Outcome(stream_clear_fd(fd));
}
inline Outcome query(int fd, stream_info& out) noexcept {
  return Outcome(stream_query_fd(fd, &out));
}
inline Outcome query(const std::string& path, stream_info& out) noexcept {
  return Outcome(stream_query_path(path.c_str(), &out));
}
inline Outcome device(const std::string& path, stream_device& out) noexcept {
  return Outcome(stream_device_path(path.c_str(), &out));
}

}  // namespace libstream

#endif
