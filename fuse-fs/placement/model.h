// Adopts the learning daemon's placement model. A model is copied from shared memory, and adopted
// only if it passes every check (learning/placement_model.h). The write path reads the copy alone.
// Thread safety: any thread may call read(), which is wait-free, and status(). The caller lets only
// one thread at a time call adopt(), adopt_stored() or take_released(). After a crash: memory only.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/read_mostly.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "fuse-fs/placement/model_status.h"
#include "fuse-fs/placement/shared_memory.h"
#include "learning/placement_model.h"

namespace streamfs::placement {

class Model {
 public:
  static Result<std::unique_ptr<Model>> make(uint16_t pstream_count,
                                             const std::array<uint8_t, 16>& uuid);
  // Returns the model in use, which does not change while the reader lives; false: none is adopted.
  ReadMostly<learning::PlacementModel>::Reader read() const { return model_.read(); }
  // Adopts a model that was stored during an earlier mount. Returns a sentence for the log. Errors:
  // those of PlacementModel::deserialize(), after which the model in use stays.
  Result<std::string> adopt_stored(const wire::ModelBuffer& stored);
  // Adopts or refuses a newly published model. Returns a sentence for the log in either case.
  // Returns nothing if none was published since the last call, or if the model failed its checks
  // and the daemon has published another one meanwhile: the next call looks at that one. Waits for
  // readers of the model before the current one.
  std::optional<std::string> adopt();

  // Returns and forgets the pStreams that an adopted model named since the last call and that the
  // current one does not name.
  std::vector<PStreamId> take_released();

  // Returns the status without telemetry_records.
  ModelStatus status() const SFS_EXCLUDES(status_mutex_);
  const SharedMapping& memory() const { return memory_; }

 private:
  Model(SharedMapping memory, uint16_t pstream_count, const std::array<uint8_t, 16>& uuid);
  const wire::ModelHeader& header() const;
  Result<void> check_header() const;
  Result<void> take(learning::PlacementModel& model, uint64_t generation) const;
  std::string refuse(uint64_t generation, const std::string& why) SFS_EXCLUDES(status_mutex_);
  std::string adopted(const learning::PlacementModel& model, bool stored)
      SFS_EXCLUDES(status_mutex_);

  SharedMapping memory_;
  const uint16_t pstream_count_;
  const std::array<uint8_t, 16> uuid_;
  ReadMostly<learning::PlacementModel> model_;
  mutable Mutex status_mutex_;  // a leaf: nothing is locked or waited for while it is held
  ModelStatus status_ SFS_GUARDED_BY(status_mutex_);
  uint64_t seen_ = 0;  // the last generation looked at, adopted or refused
  // pStreams that the current model names, and those for take_released().
  std::bitset<256> used_, released_;
};

}  // namespace streamfs::placement
