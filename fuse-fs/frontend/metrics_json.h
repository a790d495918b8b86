// The control socket's answer to "metrics" as JSON (base/wire/control.h).
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "fuse-fs/frontend/op_times.h"

namespace streamfs::frontend {

// Returns the times of the operations that were requested at least once.
nlohmann::json metrics_json(const OpTimes& ops);

}  // namespace streamfs::frontend
