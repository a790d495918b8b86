// The figures, each from a file of its name. A new figure must be added here and to registry.cc.
// Thread safety: pure functions.
#pragma once

#include "lab/figures/figure.h"

namespace streamfs::lab::figures {

Figure vishwakarma2019_waf();
Figure vishwakarma2019_streams();
Figure kim2015_fig3();
Figure kim2015_fig4();
Figure kim2015_fig5();
Figure yong2021_fig5();
Figure yong2021_fig6();
Figure yong2021_f2fs();
Figure yong2021_overhead();
Figure choi_fio();
Figure choi_rocksdb();
Figure choi_rocksdb_settings();
Figure lee_randwrite();
Figure lee_iozone();
Figure lee_erase();
Figure lee_startup();
Figure lee_selective();

}  // namespace streamfs::lab::figures
