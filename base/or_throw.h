// Turns errors into exceptions at the boundary to Python, where pybind11 raises ValueError.
// Thread safety: pure function.
#pragma once

#include <stdexcept>
#include <utility>

#include "base/result.h"

namespace streamfs {

// Throws std::invalid_argument with the error's sentence.
template <typename T>
T or_throw(Result<T> result) {
  if (!result.ok()) throw std::invalid_argument(result.error().message());
  return std::move(result).value();
}

}  // namespace streamfs
