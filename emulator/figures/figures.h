// The figures, each from a file of its name; a new one is named here and in registry.cc.
// Thread safety: pure functions.
#pragma once

#include "emulator/figures/figure.h"

namespace streamfs::emulator::figures {

Figure yong2021_overhead();
Figure lee_randwrite();
Figure lee_iozone();
Figure lee_erase();
Figure lee_startup();
Figure lee_selective();

}  // namespace streamfs::emulator::figures
