// What a placement policy may know of the whole stream before it starts.
// Thread safety: values.
#pragma once

#include "emulator/workload/lifetimes.h"
#include "emulator/workload/op_source.h"

namespace streamfs::emulator {

struct WorkloadFacts : StreamFacts {
  LifetimeHistogram lifetimes;  // empty unless annotated
};

}  // namespace streamfs::emulator
