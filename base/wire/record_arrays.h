// Telemetry records as numpy arrays, for modules of Python. Thread safety: the caller holds the
// GIL.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>

#include "base/wire/telemetry.h"

namespace streamfs::wire {

template <typename T>
using Array = pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>;

// Returns the records of a contiguous array of 40-byte items. The span borrows its memory. Throws
// std::invalid_argument for any other array.
inline std::span<const TelemetryRecord> records_of(const pybind11::array& array) {
  const bool fits = array.ndim() == 1 && array.itemsize() == sizeof(TelemetryRecord) &&
                    (array.flags() & pybind11::array::c_style) != 0;
  if (!fits) throw std::invalid_argument("a contiguous array of 40-byte records is needed");
  return {static_cast<const TelemetryRecord*>(array.data()), static_cast<size_t>(array.size())};
}

// Returns a copy of the records, u8[40 * records].
inline pybind11::array_t<uint8_t> bytes_of(std::span<const TelemetryRecord> records) {
  pybind11::array_t<uint8_t> out(static_cast<pybind11::ssize_t>(records.size_bytes()));
  std::memcpy(out.mutable_data(), records.data(), records.size_bytes());
  return out;
}

inline std::span<const uint8_t> span_of(const Array<uint8_t>& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

}  // namespace streamfs::wire
