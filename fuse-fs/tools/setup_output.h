// Prints a proposal of `streamctl setup`, in words or as JSON.
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/setup_proposal.h"

namespace streamfs::tools {

std::string proposal_text(const Proposal& proposal, const Style& style);
nlohmann::json proposal_json(const Proposal& proposal);

// Returns a step as a shell would take it: "mkdir -p /srv/data", "write
// /etc/streamfs/srv/data.conf".
std::string step_text(const Step& step);

}  // namespace streamfs::tools
