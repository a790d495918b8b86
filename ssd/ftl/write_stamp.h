// The fields that a host write stores in the spare area beside its logical page.
// Thread safety: values.
#pragma once

#include <cstdint>

namespace streamfs::ssd {

struct WriteStamp {
  uint64_t sequence;    // counts all programs, GC's too
  uint64_t written_at;  // host pages written before this one; a copy keeps it
  uint16_t vstream;
  uint16_t pstream;
};

}  // namespace streamfs::ssd
