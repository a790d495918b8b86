// The figures, each from a file of its name; a new one is named here and in registry.cc.
// Thread safety: pure functions.
#pragma once

#include "emulator/figures/figure.h"

namespace streamfs::emulator::figures {

Figure yong2021_fig5();
Figure yong2021_fig6();
Figure yong2021_overhead();

}  // namespace streamfs::emulator::figures
