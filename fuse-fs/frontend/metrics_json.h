// The control socket's answer to "metrics" as JSON (base/wire/control.h).
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "base/io_sizes.h"
#include "fuse-fs/frontend/meters.h"

namespace streamfs::frontend {

// Returns the times of the operations that were requested at least once, and the sizes of reads and
// writes: the kernel's, and those to DATA.
nlohmann::json metrics_json(const Meters& meters, const IoSizes& device);

}  // namespace streamfs::frontend
