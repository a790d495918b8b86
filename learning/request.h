// A write request as the filesystem got it, whole or a part of it.
// Thread safety: a value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/mix.h"
#include "base/wire/model_table.h"
#include "learning/table.h"

namespace streamfs::learning {

// A value for `before` in Request::follows() when no page was placed yet: neither it nor the number
// after it is a page of a device, so follows() returns false.
inline constexpr uint64_t kNoPage = ~uint64_t{1};

struct Request {
  uint64_t page = 0;  // on the device, of this part
  uint32_t pages = 0;
  uint32_t whole_pages = 0;  // of the whole request
  uint32_t offset = 0;       // of this part in the request, pages
  uint16_t vstream = 0;
  uint8_t age = 0;         // age class of the overwritten data (base/wire/model_table.h)
  uint8_t file_place = 0;  // of the request (file_place(), steps.h); 0: unknown
  // The life table's row for the vStream. It has an entry for each shape (base/wire/model_table.h):
  // 1 + half_log2(expected lifetime) (steps.h), or 0 if that is unknown. Empty: the table has no
  // row for the vStream.
  std::span<const uint8_t> expected = {};
  ChunkMap chunks = {};  // the class of each chunk, for shape()

  // Returns the shape of the page at `index` of this part.
  uint32_t shape(uint32_t index) const {
    return wire::shape_of(whole_pages, offset + index, age, chunks.of(page + index));
  }
  // Returns what the life table expects of the page at `index` of this part; 0: nothing.
  uint8_t expected_of(uint32_t index) const {
    const uint32_t at = shape(index);
    return at < expected.size() ? expected[at] : uint8_t{0};
  }
  // Returns the pages of the request that follow the page at `index` of this part.
  uint32_t tail_of(uint32_t index) const {
    return whole_pages - 1 - std::min(offset + index, whole_pages - 1);
  }
  // Returns whether the page at `index` of this part continues its request right after `before`,
  // the page that was placed last.
  bool follows(uint32_t index, uint64_t before) const {
    return offset + index > 0 && page + index == before + 1;
  }
  // Returns whether a model learns from the page at `index` of this part. Inner pages of a request
  // mostly die together, so a model that learned from each would count one observation many times.
  bool teaches(uint32_t index) const {
    constexpr uint64_t kInnerOneIn = 16;
    const bool inner = offset + index > 0 && offset + index + 2 < whole_pages;
    return !inner || mix64(page + index) % kInnerOneIn == 0;
  }
};

}  // namespace streamfs::learning
