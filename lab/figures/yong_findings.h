// Findings of Yong 2021's figure 6, computed from its runs.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "lab/figures/figure.h"

namespace streamfs::lab::figures {

// Copies, as shares of Legacy's, that one trace's contenders have more than vStream-SGC.
struct CopiesMore {
  Measured ngc;  // vStream-NGC: its copies go anywhere
  Measured own;  // not looked up again: its copies stay with their pStream
};

std::vector<std::string> fig6_findings(const CopiesMore& drifting, const CopiesMore& steady);

}  // namespace streamfs::lab::figures
