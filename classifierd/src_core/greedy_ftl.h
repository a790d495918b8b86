// A small page-mapped FTL for offline figures: one open block a class, greedy victims, live pages
// copied to their own class (host-only tags, the device keeps them apart). The emulator is the
// one to trust for anything else. Thread safety: pure function.
#pragma once

#include <cstdint>
#include <span>

#include "classifierd/src_core/page_trace.h"

namespace streamfs::classifier {

struct FtlSettings {
  double spare = 0.07;  // spare ÷ peak live pages; open and reserve blocks come on top
  uint32_t block_pages = 256;
  double measure_from = 0.3;  // share of the writes that only warm the device up
  double measure_to = 1.0;
};

struct FtlResult {
  uint64_t user_pages = 0;
  uint64_t copied_pages = 0;
  double waf() const {
    return user_pages == 0
               ? 1.0
               : static_cast<double>(user_pages + copied_pages) / static_cast<double>(user_pages);
  }
};

// `tags` holds one class a page written, all below 256; empty means one class.
FtlResult simulate(const PageTrace& trace, std::span<const uint8_t> tags,
                   const FtlSettings& settings);

}  // namespace streamfs::classifier
