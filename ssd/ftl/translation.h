// The interface of every FTL here to its host: write, trim, flush and locate pages. A driver that
// takes an Ftl works with the page map, the log-block FTL and the hybrid FTL.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "ssd/counters.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

// write() and flush() return errno values, 0 for none; after an error of write() a prefix of the
// pages, perhaps empty, is written. location() is kNoPage for a page that is not live.
template <typename T>
concept Ftl = requires(T& ftl, const T& known, Lpn page, uint32_t count, FrontierId frontier,
                       uint16_t vstream, const std::byte* data) {
  { ftl.write(page, count, frontier, vstream, data) } -> std::same_as<int>;
  { ftl.trim(page) } -> std::same_as<void>;
  { ftl.flush() } -> std::same_as<int>;
  { known.location(page) } -> std::same_as<Ppn>;
  { known.live(page) } -> std::same_as<bool>;
};

// Calls write_page(page, bytes) for each page and counts it; returns the first errno value, or 0.
// `data` may be null, and `bytes` then is.
template <typename WritePage>
int write_each(Lpn first, uint32_t count, const std::byte* data, uint32_t page_bytes,
               Counters& counters, const WritePage& write_page) {
  for (uint32_t i = 0; i < count; ++i) {
    if (const int error = write_page(first + i, data); error != 0) return error;
    ++counters.host_pages;
    if (data != nullptr) data += page_bytes;
  }
  return 0;
}

}  // namespace streamfs::ssd
