#include "fuse-fs/data/gate.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace streamfs::data {

// `left` is read first: a thread that enters meanwhile makes the gate look busy, never empty.
void Gate::wait_until_empty() const {
  for (;;) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const uint64_t left = counts_.sum(kLeft);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (left == counts_.sum(kEntered)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace streamfs::data
