#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

#include "base/assert.h"
#include "base/result.h"

namespace streamfs {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "streamfs: broken invariant: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

std::string Error::message() const {
  const std::string reason = std::generic_category().message(code);
  return context.empty() ? reason : context + ": " + reason;
}

}  // namespace streamfs
