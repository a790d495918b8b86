// Reports the failure of a program: one line on stderr that says what to do, and an exit code.
// Thread safety: pure functions but for stderr.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace streamfs::tools {

// For --help.
inline constexpr const char* kExitCodesHelp =
    "Exit codes: 0 done, 64 usage, 65 not this filesystem's devices, 66 no such path, 69 no FUSE, "
    "70 I/O, 73 not empty, 74 too small, 75 in use, 76 damaged, 77 not permitted.";

struct Failure {
  int exit_code;
  std::string sentence;
};

// Returns the exit code and the sentence for an error of opening, making or mounting a filesystem.
Failure explain(const Error& error);

// Prints "PROGRAM: SENTENCE" on stderr and returns the exit code, with which main() ends.
int fail(std::string_view program, const Failure& failure);
int fail(std::string_view program, const Error& error);

}  // namespace streamfs::tools
