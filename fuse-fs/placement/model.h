// The daemon's model table. It is copied from shared memory, and adopted only if it passes every
// check (base/wire/model_table.h). lookup() reads the copy alone.
// Thread safety: lookup() any thread, wait-free; status() any thread; adopt() and take_released()
// one thread at a time. Crash: memory only.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "fuse-fs/placement/model_status.h"
#include "fuse-fs/placement/shared_memory.h"

namespace streamfs::placement {

class Model {
 public:
  static Result<std::unique_ptr<Model>> make(uint16_t pstream_count,
                                             const std::array<uint8_t, 16>& uuid);
  // Returns nothing if no table is adopted, or if the vStream is younger than the table.
  std::optional<PStreamId> lookup(VStreamId vstream, uint32_t shape, uint64_t born_clock) const {
    const Table* table = active_.load(std::memory_order_acquire);
    if (table == nullptr || born_clock > table->clock_pages.load(std::memory_order_relaxed)) {
      return std::nullopt;
    }
    const auto& entry = table->entries[uint32_t{vstream.value} * wire::kShapeStride + shape];
    return PStreamId{entry.load(std::memory_order_relaxed)};
  }
  // Adopts or refuses a newly published table. Returns a sentence for the log in either case;
  // nothing if none was published since the last call. Each call overwrites the idle one of two
  // tables. A lookup that still reads it gets an entry of the old or the new table, both valid.
  std::optional<std::string> adopt();

  // Returns and forgets the pStreams that an adopted table named since the last call and that the
  // current table does not name.
  std::vector<PStreamId> take_released();

  bool adopted() const { return active_.load(std::memory_order_relaxed) != nullptr; }
  // Returns the status without telemetry_records.
  ModelStatus status() const SFS_EXCLUDES(status_mutex_);
  const SharedMapping& memory() const { return memory_; }

 private:
  struct Table {
    std::atomic<uint64_t> clock_pages{0};
    std::array<std::atomic<uint8_t>, wire::kModelEntries> entries{};
  };
  Model(SharedMapping memory, uint16_t pstream_count, const std::array<uint8_t, 16>& uuid);
  const wire::ModelHeader& header() const;
  Result<void> check_header() const;
  Result<void> check_buffer(const wire::ModelBuffer& copy, uint64_t generation) const;
  std::string refuse(uint64_t generation, const std::string& why) SFS_EXCLUDES(status_mutex_);
  std::string adopt_copy(uint64_t generation) SFS_EXCLUDES(status_mutex_);

  SharedMapping memory_;
  const uint16_t pstream_count_;
  const std::array<uint8_t, 16> uuid_;
  std::unique_ptr<wire::ModelBuffer> copy_;  // of the shared buffer under examination
  std::array<std::unique_ptr<Table>, 2> tables_;
  std::atomic<const Table*> active_{nullptr};
  mutable Mutex status_mutex_;  // a leaf: nothing is locked or waited for while it is held
  ModelStatus status_ SFS_GUARDED_BY(status_mutex_);
  uint64_t seen_ = 0;  // the last generation looked at, adopted or refused
  // pStreams that the current table names, and those for take_released().
  std::bitset<256> used_, released_;
};

}  // namespace streamfs::placement
