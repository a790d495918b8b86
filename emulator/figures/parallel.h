// Independent runs on as many threads as there are cores to spend.
// Thread safety: in_parallel() is called by one thread; `run` by several at once, each index once.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace streamfs::emulator::figures {

// run(0) … run(count − 1). After an error nothing new is begun; the first one, by index, returns.
Result<void> in_parallel(unsigned jobs, size_t count,
                         const std::function<Result<void>(size_t)>& run);

}  // namespace streamfs::emulator::figures
