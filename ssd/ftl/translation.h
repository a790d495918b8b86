// What every FTL here is to its host: pages written, trimmed, made safe and found again. A driver
// that takes an Ftl works on the page map, the log-block FTL and the hybrid one alike.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "ssd/counters.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

// write() and flush() return errno values, 0 for none; the pages before the one that failed are
// written. location() is kNoPage where nothing is live.
template <typename T>
concept Ftl = requires(T& ftl, const T& known, Lpn page, uint32_t count, FrontierId frontier,
                       uint16_t vstream, const std::byte* data) {
  { ftl.write(page, count, frontier, vstream, data) } -> std::same_as<int>;
  { ftl.trim(page) } -> std::same_as<void>;
  { ftl.flush() } -> std::same_as<int>;
  { known.location(page) } -> std::same_as<Ppn>;
  { known.live(page) } -> std::same_as<bool>;
};

// Page after page: write_page(page, bytes) is 0 or an errno value, which ends it. No data: none.
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
