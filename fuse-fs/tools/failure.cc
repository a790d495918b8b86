#include "fuse-fs/tools/failure.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/exit_codes.h"
#include "base/result.h"

namespace streamfs::tools {
namespace {

// Returns whether the error's context is a whole sentence that already says what to do.
bool speaks_for_itself(int code) {
  return code == EMEDIUMTYPE || code == EEXIST || code == ENOTEMPTY || code == EALREADY ||
         code == EUCLEAN || code == ENOMSG || code == ENOPROTOOPT;
}

bool is_damage(const Error& error) {
  return error.code == EUCLEAN || error.context.find("damaged") != std::string::npos;
}

int exit_code_of(const Error& error) {
  if (is_damage(error)) return exit_code::kCorrupt;
  switch (error.code) {
    case ENOENT:
    case ENOTDIR:
    case ENOTBLK:
    case ENOTCONN:
    case ENXIO:
    case EISDIR:
      return exit_code::kNoDevice;
    case EMEDIUMTYPE:
    case EINVAL:
      return exit_code::kForeign;
    case EEXIST:
    case ENOTEMPTY:
      return exit_code::kNotEmpty;
    case ENOSPC:
      return exit_code::kTooSmall;
    case EBUSY:
      return exit_code::kBusy;
    case EACCES:
    case EPERM:
    case EROFS:
      return exit_code::kNoPermission;
    case ENODEV:
    case ENOPROTOOPT:
      return exit_code::kNoFuse;
    case ENOMSG:
      return exit_code::kNoMatch;
    default:
      return exit_code::kIo;
  }
}

std::string_view advice(int exit_code) {
  switch (exit_code) {
    case exit_code::kCorrupt:
      return "; run fsck.streamfs on the pair";
    case exit_code::kNoDevice:
      return "; check the path";
    case exit_code::kForeign:
      return "; check which devices were given";
    case exit_code::kTooSmall:
      return "; give more space";
    case exit_code::kBusy:
      return "; unmount it first";
    case exit_code::kNoPermission:
      return "; run as root, or get access to it";
    default:
      return "";
  }
}

}  // namespace

Failure explain(const Error& error) {
  const int code = exit_code_of(error);
  if (speaks_for_itself(error.code) && !error.context.empty()) return {code, error.context};
  // For EROFS there is no advice: root cannot write there either.
  const std::string_view more = error.code == EROFS ? "" : advice(code);
  return {code, error.message() + std::string(more)};
}

int fail(std::string_view program, const Failure& failure) {
  std::string line = fmt::format("{}: {}", program, failure.sentence);
  for (char& each : line) {
    if (each == '\n') each = ' ';
  }
  fmt::print(stderr, "{}\n", line);
  return failure.exit_code;
}

int fail(std::string_view program, const Error& error) {
  return fail(program, explain(error));
}

}  // namespace streamfs::tools
