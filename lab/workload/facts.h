// Facts about the whole stream that a placement policy may use before it starts.
// Thread safety: values.
#pragma once

#include "lab/workload/lifetimes.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab {

struct WorkloadFacts : StreamFacts {
  LifetimeHistogram lifetimes;  // empty unless annotated
};

}  // namespace streamfs::lab
