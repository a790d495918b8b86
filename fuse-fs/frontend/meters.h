// What the frontend itself counts and is told, for the control socket; one for each mount.
// Thread safety: any thread. Crash: memory only.
#pragma once

#include "fuse-fs/frontend/op_times.h"
#include "fuse-fs/frontend/savings.h"

namespace streamfs::frontend {

struct Meters {
  OpTimes ops;
  Savings savings;
};

}  // namespace streamfs::frontend
