#include "fuse-fs/placement/model.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "base/wire/model_table.h"
#include "learning/placement_model.h"

namespace streamfs::placement {

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

Result<void> Model::take(learning::PlacementModel& model, uint64_t generation) const {
  SFS_TRY(check_header());
  const std::byte* const buffers = memory_.data() + sizeof(wire::ModelHeader);
  const auto* const published = std::launder(reinterpret_cast<const wire::ModelBuffer*>(
      buffers + generation % 2 * sizeof(wire::ModelBuffer)));
  SFS_TRY(model.deserialize(*published, pstream_count_));
  if (model.generation() != generation) return Error{EINVAL, "buffer of another generation"};
  return {};
}

Result<std::string> Model::adopt_stored(const wire::ModelBuffer& stored) {
  Result<void> taken;
  model_.replace([&](learning::PlacementModel& idle) {
    taken = idle.deserialize(stored, pstream_count_);
    if (taken.ok()) idle.begin_mount();
    return taken.ok();
  });
  SFS_TRY(taken);
  return adopted(*model_.read(), true);
}

std::optional<std::string> Model::adopt() {
  const uint64_t published = header().active.load(std::memory_order_acquire);
  if (published == 0 || published == seen_) return std::nullopt;
  seen_ = published;
  Result<void> taken;
  model_.replace([&](learning::PlacementModel& idle) {
    taken = take(idle, published);
    return taken.ok();
  });
  if (taken.ok()) return adopted(*model_.read(), false);
  // The daemon overwrites a buffer once the other one is active, also while it is being copied. The
  // fence keeps the copy before this look.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (header().active.load(std::memory_order_acquire) != published) return std::nullopt;
  return refuse(published, taken.error().context);
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

std::string Model::adopted(const learning::PlacementModel& model, bool stored) {
  const std::bitset<256> used = model.pstreams();
  released_ = (released_ | used_) & ~used;
  used_ = used;
  const MutexLock lock(status_mutex_);
  status_.adopted = true;
  status_.generation = model.generation();
  status_.stored = stored;
  if (!stored) status_.looked_at = model.generation();
  status_.kind = model.kind();
  ++status_.adoptions;
  return "model " + std::to_string(model.generation()) +
         (status_.kind.empty() ? "" : " (" + status_.kind + ")") + " adopted";
}

}  // namespace streamfs::placement
