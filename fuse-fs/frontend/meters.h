// Counters of the frontend itself, and the savings that it is told, for the control socket. Each
// mount has one object.
// Thread safety: any thread.
#pragma once

#include "fuse-fs/frontend/op_times.h"
#include "fuse-fs/frontend/savings.h"

namespace streamfs::frontend {

struct Meters {
  OpTimes ops;
  Savings savings;
};

}  // namespace streamfs::frontend
