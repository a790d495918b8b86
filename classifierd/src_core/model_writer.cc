#include "classifierd/src_core/model_writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "base/checksum.h"
#include "base/wire/magic.h"

namespace streamfs::classifier {

using wire::ModelBuffer;
using wire::ModelHeader;

ModelWriter::ModelWriter(int fd) : map_(fd, SharedMap::Access::kReadWrite, wire::kModelBytes) {
  if (header().magic != wire::kModelMagic) throw std::runtime_error("model: wrong magic");
  if (header().version != wire::kModelVersion) throw std::runtime_error("model: unknown version");
  if (header().buffer_size != sizeof(ModelBuffer)) {
    throw std::runtime_error("model: unknown buffer size");
  }
}

uint64_t ModelWriter::publish(std::span<const uint8_t> entries, uint32_t pstream_count,
                              uint64_t clock_pages, std::string_view kind) {
  if (entries.size() != wire::kModelEntries) throw std::invalid_argument("model: wrong size");
  const auto too_high = [=](uint8_t entry) { return entry >= pstream_count; };
  if (std::ranges::any_of(entries, too_high)) {
    throw std::invalid_argument("model: an entry names a pStream the device does not have");
  }
  if (kind.size() > wire::kModelKindBytes) throw std::invalid_argument("model: kind too long");
  const uint64_t next = generation() + 1;
  ModelBuffer& idle = buffer(next);
  idle.generation = next;
  idle.pstream_count = pstream_count;
  idle.checksum = crc32c(std::as_bytes(entries));
  idle.clock_pages = clock_pages;
  std::ranges::fill(idle.kind, '\0');
  std::ranges::copy(kind, idle.kind);
  std::ranges::copy(entries, idle.entries);
  header().active.store(next, std::memory_order_release);
  return next;
}

void ModelWriter::heartbeat(uint64_t now_ms) {
  header().heartbeat.store(now_ms, std::memory_order_relaxed);
}

uint64_t ModelWriter::generation() const {
  return header().active.load(std::memory_order_acquire);
}

std::vector<uint8_t> ModelWriter::uuid() const {
  return {std::begin(header().uuid), std::end(header().uuid)};
}

ModelHeader& ModelWriter::header() const {
  return *reinterpret_cast<ModelHeader*>(map_.data());
}

ModelBuffer& ModelWriter::buffer(uint64_t generation) const {
  std::byte* const first = map_.data() + sizeof(ModelHeader);
  return *reinterpret_cast<ModelBuffer*>(first + (generation % 2) * sizeof(ModelBuffer));
}

}  // namespace streamfs::classifier
