// A stream of page operations that can be rewound: a trace, a generator, or either with a prefill.
// A replay keeps its state by page, so the device and not the length of the stream bounds its
// memory.
// Thread safety: none; one reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "ssd/geometry.h"

namespace streamfs::lab {

inline constexpr size_t kBatchOps = 2048;  // approximate operations a batch

// kRelease: the host expects no write to `pstream` for long.
enum class OpKind : uint8_t { kWrite, kTrim, kRead, kRelease };

// An operation on one page.
struct PageOp {
  ssd::Lpn page = 0;           // dense: numbered by first appearance
  uint32_t address = 0;        // the host's page number, modulo 2^32
  uint32_t request_first = 0;  // address − request_first is the page's place in its request
  uint32_t request_pages = 1;  // of the whole request, all pieces together
  uint32_t context = 0;
  uint16_t vstream = 0, pstream = 0;
  OpKind kind = OpKind::kWrite;
};

// Facts about a whole stream.
struct StreamFacts {
  uint32_t footprint_pages = 0;  // upper bound of the page numbers, exclusive
  uint64_t peak_live_pages = 0;
  uint64_t writes = 0;
};

struct Tag {
  uint16_t vstream = 0, pstream = 0;
};

class OpSource {
 public:
  virtual ~OpSource() = default;

  // Returns the next operations, valid until the next call; none at the end.
  // Errors: those of the input, with line or record and value.
  virtual Result<std::span<const PageOp>> next() = 0;
  // Restarts the stream, which yields the same operations again, bit for bit.
  virtual Result<void> rewind() = 0;
  // Returns the facts if they are known without a pass over the stream; footprint_pages and
  // peak_live_pages are then upper bounds.
  virtual std::optional<StreamFacts> facts() const { return std::nullopt; }
  // Returns the tag of the page's data from before the stream, on a device that starts full.
  virtual Tag resident_tag(ssd::Lpn /*page*/) const { return {}; }
};

}  // namespace streamfs::lab
