// Findings of Yong 2021's figures, computed from their runs.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "lab/figures/figure.h"

namespace streamfs::lab::figures {

// Copies of each contender beyond vStream-SGC's on one trace, as shares of Legacy's copies.
struct CopiesMore {
  Measured ngc;  // vStream-NGC: copies go anywhere
  Measured own;  // copies are not looked up again and stay with their pStream
};

// Says how the copies of vStream-SGC and vStream-NGC differ. `gap`: NGC's less SGC's.
std::string beside_ngc(const std::string& when, const Measured& gap);

std::vector<std::string> fig6_findings(const CopiesMore& drifting, const CopiesMore& steady);

}  // namespace streamfs::lab::figures
