// Counters of the frontend itself, and the savings that it is told, for the control socket. Each
// mount has one object.
// Thread safety: any thread.
#pragma once

#include "base/io_sizes.h"
#include "fuse-fs/frontend/op_times.h"
#include "fuse-fs/frontend/savings.h"

namespace streamfs::frontend {

struct Meters {
  OpTimes ops;
  IoSizes sizes;  // of the kernel's READ and WRITE requests
  Savings savings;
};

}  // namespace streamfs::frontend
