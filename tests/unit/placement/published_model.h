// The daemon's end of a filesystem's model memory: says tables, right ones or not.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/checksum.h"
#include "base/wire/model_table.h"

namespace streamfs::placement {

class PublishedModel {
 public:
  PublishedModel(int fd, uint64_t size)
      : size_(size),
        at_(static_cast<std::byte*>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0))) {}
  ~PublishedModel() { ::munmap(at_, size_); }
  PublishedModel(const PublishedModel&) = delete;
  PublishedModel& operator=(const PublishedModel&) = delete;

  std::byte* bytes() { return at_; }
  wire::ModelHeader& header() { return *reinterpret_cast<wire::ModelHeader*>(at_); }
  wire::ModelBuffer& buffer(uint64_t generation) {
    return *reinterpret_cast<wire::ModelBuffer*>(at_ + sizeof(wire::ModelHeader) +
                                                 generation % 2 * sizeof(wire::ModelBuffer));
  }
  // For a device of four pStreams; stream_of(shape) holds for every vStream.
  template <typename StreamOf>
  void publish(uint64_t generation, const StreamOf& stream_of) {
    wire::ModelBuffer& out = buffer(generation);
    out.generation = generation;
    out.pstream_count = 4;
    out.clock_pages = 1'000'000;
    out.table_rows = 1;
    std::ranges::fill(out.row_of, uint16_t{0});
    std::ranges::fill(out.chunks, uint8_t{0});
    for (uint32_t shape = 0; shape < wire::kShapes; ++shape) {
      out.entries[shape] = static_cast<uint8_t>(stream_of(shape));
    }
    std::strncpy(out.kind, "life-table", sizeof out.kind);
    out.serves = wire::ModelServes::kTable;
    out.classes = 1;
    std::ranges::fill(out.pstreams, uint8_t{0});
    out.live_pages = 1;
    say(generation);
  }

  // Sums the generation's buffer and makes it active.
  void say(uint64_t generation) {
    wire::ModelBuffer& out = buffer(generation);
    out.checksum = crc32c(wire::summed(out));
    header().active.store(generation);
  }

 private:
  const uint64_t size_;
  std::byte* const at_;
};

}  // namespace streamfs::placement
