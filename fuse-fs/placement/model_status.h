// The status of the daemon's models since the mount.
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <string>

namespace streamfs::placement {

struct ModelStatus {
  bool adopted = false;     // a model is in use
  uint64_t generation = 0;  // of the model in use; 0: none
  bool stored = false;      // the model in use was stored during an earlier mount
  std::string kind;         // of the model in use, as the daemon names it
  uint64_t looked_at = 0;   // the last generation published on this mount, adopted or refused
  uint64_t adoptions = 0, refused = 0;
  std::string refusal;             // why the last refused model was refused; empty: none was
  uint64_t telemetry_records = 0;  // Telemetry::records()
};

}  // namespace streamfs::placement
