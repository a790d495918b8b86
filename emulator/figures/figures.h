// The figures, each from a file of its name; a new one is named here and in registry.cc.
// Thread safety: pure functions.
#pragma once

#include "emulator/figures/figure.h"

namespace streamfs::emulator::figures {

Figure vishwakarma2019_waf();
Figure yong2021_fig5();
Figure yong2021_fig6();
Figure yong2021_overhead();
Figure choi_fio();
Figure choi_rocksdb();

}  // namespace streamfs::emulator::figures
