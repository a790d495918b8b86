// What a host write leaves in the spare area beside its logical page. Thread safety: values.
#pragma once

#include <cstdint>

namespace streamfs::ssd {

struct WriteStamp {
  uint64_t sequence;    // of every programming, GC's too
  uint64_t written_at;  // host pages written before it; a copy keeps it
  uint16_t vstream;
  uint16_t pstream;
};

}  // namespace streamfs::ssd
