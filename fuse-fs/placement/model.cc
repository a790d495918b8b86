#include "fuse-fs/placement/model.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "base/wire/model_table.h"

namespace streamfs::placement {

namespace {

std::bitset<256> streams_in(const wire::ModelBuffer& table) {
  std::bitset<256> found;
  for (size_t i = 0; i < wire::kModelEntries; ++i) {
    if (i % wire::kShapeStride < wire::kShapes) found.set(table.entries[i]);
  }
  return found;
}

// Returns the table's kind, up to the first NUL.
std::string kind_of(const wire::ModelBuffer& table) {
  return {std::begin(table.kind), std::find(std::begin(table.kind), std::end(table.kind), '\0')};
}

bool is_kind(std::string_view text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return text.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

std::vector<PStreamId> Model::take_released() {
  std::vector<PStreamId> out;
  for (size_t stream = 0; stream < released_.size(); ++stream) {
    if (released_.test(stream)) out.push_back(PStreamId{static_cast<uint16_t>(stream)});
  }
  released_.reset();
  return out;
}

Result<std::unique_ptr<Model>> Model::make(uint16_t pstream_count,
                                           const std::array<uint8_t, 16>& uuid) {
  SFS_ASSIGN(SharedMapping memory, SharedMapping::make("streamfs-model", wire::kModelBytes));
  auto* header = new (memory.data()) wire::ModelHeader{};
  header->magic = wire::kModelMagic;
  header->version = wire::kModelVersion;
  header->buffer_size = sizeof(wire::ModelBuffer);
  std::copy(uuid.begin(), uuid.end(), header->uuid);
  return std::unique_ptr<Model>(new Model(std::move(memory), pstream_count, uuid));
}

Model::Model(SharedMapping memory, uint16_t pstream_count, const std::array<uint8_t, 16>& uuid)
    : memory_(std::move(memory)), pstream_count_(pstream_count), uuid_(uuid) {}

const wire::ModelHeader& Model::header() const {
  return *std::launder(reinterpret_cast<const wire::ModelHeader*>(memory_.data()));
}

Result<void> Model::check_header() const {
  const wire::ModelHeader& shared = header();
  if (shared.magic != wire::kModelMagic) return Error{EINVAL, "no model table there"};
  if (shared.version != wire::kModelVersion) return Error{EINVAL, "another version"};
  if (shared.buffer_size != sizeof(wire::ModelBuffer)) return Error{EINVAL, "another size"};
  if (!std::equal(uuid_.begin(), uuid_.end(), shared.uuid)) {
    return Error{EINVAL, "made for another filesystem"};
  }
  return {};
}

Result<void> Model::check_buffer(const wire::ModelBuffer& copy, uint64_t generation) const {
  if (copy.generation != generation) return Error{EINVAL, "buffer of another generation"};
  if (copy.pstream_count == 0 || copy.pstream_count > pstream_count_) {
    return Error{EINVAL, "made for another number of pStreams"};
  }
  if (crc32c(std::as_bytes(std::span(copy.entries))) != copy.checksum) {
    return Error{EINVAL, "wrong checksum"};
  }
  const uint8_t largest = *std::max_element(std::begin(copy.entries), std::end(copy.entries));
  if (largest >= copy.pstream_count) return Error{EINVAL, "names a pStream that is not there"};
  if (!is_kind(kind_of(copy))) return Error{EINVAL, "its kind is no name"};
  return {};
}

std::optional<std::string> Model::adopt() {
  const uint64_t published = header().active.load(std::memory_order_acquire);
  if (published == 0 || published == seen_) return std::nullopt;
  seen_ = published;
  if (copy_ == nullptr) copy_ = std::make_unique<wire::ModelBuffer>();
  std::memcpy(
      copy_.get(),
      memory_.data() + sizeof(wire::ModelHeader) + (published % 2) * sizeof(wire::ModelBuffer),
      sizeof(wire::ModelBuffer));
  Result<void> checked = check_header();
  if (checked.ok()) checked = check_buffer(*copy_, published);
  if (!checked.ok()) return refuse(published, checked.error().context);
  return adopt_copy(published);
}

ModelStatus Model::status() const {
  const MutexLock lock(status_mutex_);
  return status_;
}

std::string Model::refuse(uint64_t generation, const std::string& why) {
  const MutexLock lock(status_mutex_);
  ++status_.refused;
  status_.looked_at = generation;
  status_.refusal = why;
  return "model " + std::to_string(generation) + " refused: " + why;
}

std::string Model::adopt_copy(uint64_t generation) {
  auto& idle =
      active_.load(std::memory_order_relaxed) == tables_[0].get() ? tables_[1] : tables_[0];
  if (idle == nullptr) idle = std::make_unique<Table>();
  for (size_t i = 0; i < idle->entries.size(); ++i) {
    idle->entries[i].store(copy_->entries[i], std::memory_order_relaxed);
  }
  idle->clock_pages.store(copy_->clock_pages, std::memory_order_relaxed);
  active_.store(idle.get(), std::memory_order_release);
  const std::bitset<256> used = streams_in(*copy_);
  released_ = (released_ | used_) & ~used;
  used_ = used;
  const MutexLock lock(status_mutex_);
  status_.adopted = true;
  status_.generation = status_.looked_at = generation;
  status_.kind = kind_of(*copy_);
  ++status_.adoptions;
  return "model " + std::to_string(generation) +
         (status_.kind.empty() ? "" : " (" + status_.kind + ")") + " adopted";
}

}  // namespace streamfs::placement
