// A stream of page operations that can be had again from its start: a trace, a generator, or one of
// them with something before it. What a replay needs of the past it keeps by page, so its memory is
// bounded by the device and not by the length of the stream.
// Thread safety: none; one reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "ssd/geometry.h"

namespace streamfs::lab {

inline constexpr size_t kBatchOps = 2048;  // what sources give at a time, about

// kRelease: nothing more is written to `pstream` for long.
enum class OpKind : uint8_t { kWrite, kTrim, kRead, kRelease };

// One page of one host request.
struct PageOp {
  ssd::Lpn page = 0;           // dense: numbered by first appearance
  uint32_t address = 0;        // where the host has it, in pages, modulo 2^32
  uint32_t request_first = 0;  // address − request_first is the page's place in its request
  uint32_t request_pages = 1;  // of the whole request, in however many pieces it came
  uint32_t context = 0;
  uint16_t vstream = 0, pstream = 0;
  OpKind kind = OpKind::kWrite;
};

// What is known of a stream as a whole.
struct StreamFacts {
  uint32_t footprint_pages = 0;  // page numbers are below this
  uint64_t peak_live_pages = 0;
  uint64_t writes = 0;
};

struct Tag {
  uint16_t vstream = 0, pstream = 0;
};

class OpSource {
 public:
  virtual ~OpSource() = default;

  // The next operations; none at the end. They stay until the next call.
  // Errors: of the input, with line or record and value.
  virtual Result<std::span<const PageOp>> next() = 0;
  // Back to the start: the same operations once more, bit for bit.
  virtual Result<void> rewind() = 0;
  // Where they are known without reading the stream; footprint and peak are at least what they are.
  virtual std::optional<StreamFacts> facts() const { return std::nullopt; }
  // What the page carries that is there before the stream begins, on a device that starts full.
  virtual Tag resident_tag(ssd::Lpn /*page*/) const { return {}; }
};

}  // namespace streamfs::lab
