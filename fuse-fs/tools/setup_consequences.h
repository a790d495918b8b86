// States in words what a proposed streamfs loses at each event, by META's class. The sentences are
// those of README ("How safe is it?") and ORDERING ("META classes").
// Thread safety: pure function.
#pragma once

#include <vector>

#include "fuse-fs/tools/setup_machine.h"
#include "fuse-fs/tools/setup_proposal.h"

namespace streamfs::tools {

// Requires: the proposal has DATA and META.
std::vector<Consequence> consequences_of(const Proposal& proposal, const Machine& machine);

}  // namespace streamfs::tools
