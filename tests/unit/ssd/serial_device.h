// An FTL of the papers on a small flash with data, and a host that knows what every page holds:
// the number of the write that it comes from. Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "ssd/counters.h"
#include "ssd/ftl/translation.h"
#include "ssd/geometry.h"
#include "ssd/media/serial_nand.h"

namespace streamfs::ssd {

inline Geometry serial_geometry(uint32_t user_pages, uint32_t pages_per_block, uint32_t blocks) {
  Geometry geometry;
  geometry.user_pages = user_pages;
  geometry.pages_per_block = pages_per_block;
  geometry.blocks = blocks;
  return geometry;
}

class SerialHost {
 public:
  static constexpr uint32_t kPageBytes = sizeof(uint64_t);

  explicit SerialHost(const Geometry& shape)
      : geometry(shape), nand(shape, kPageBytes, {}), holds(shape.user_pages) {}

  template <Ftl F>
  int write(F& ftl, Lpn page) {
    const uint64_t version = ++versions;
    tried = page;
    const int error = ftl.write(page, 1, 0, 0, reinterpret_cast<const std::byte*>(&version));
    if (error == 0) holds[page] = version;
    return error;
  }
  template <Ftl F>
  void trim(F& ftl, Lpn page) {
    tried = page;
    ftl.trim(page);
    if (nand.powered()) holds[page] = 0;
  }
  // Returns the page's content, 0 if nothing is live.
  template <Ftl F>
  uint64_t read(const F& ftl, Lpn page) {
    if (!ftl.live(page)) return 0;
    uint64_t version = 0;
    EXPECT_EQ(nand.read(ftl.location(page), reinterpret_cast<std::byte*>(&version)), 0)
        << "page " << page;
    return version;
  }
  template <Ftl F>
  void expect_all(const F& ftl) {
    for (Lpn page = 0; page < geometry.user_pages; ++page)
      ASSERT_EQ(read(ftl, page), holds[page]) << "page " << page;
  }

  const Geometry geometry;
  Counters counters;
  SerialNand nand;
  std::vector<uint64_t> holds;  // by page; 0: nothing
  uint64_t versions = 0;
  Lpn tried = 0;  // by the last request
};

}  // namespace streamfs::ssd
