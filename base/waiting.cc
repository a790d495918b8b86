#include "base/waiting.h"

#include <atomic>
#include <cstdint>

#include "base/assert.h"

namespace streamfs {
namespace {

bool& trying() {
  thread_local bool mine = false;
  return mine;
}

std::atomic<uint64_t>& waits() {
  static std::atomic<uint64_t> count{0};
  return count;
}

std::atomic<bool>& aborts() {
  static std::atomic<bool> on{false};
  return on;
}

}  // namespace

Trying::Trying() {
  trying() = true;
}

Trying::~Trying() {
  trying() = false;
}

bool may_wait() {
  return !trying();
}

void about_to_wait() {
  if (may_wait()) return;
  waits().fetch_add(1, std::memory_order_relaxed);
  SFS_ASSERT(!aborts().load(std::memory_order_relaxed));
}

void abort_on_waits() {
  aborts().store(true, std::memory_order_relaxed);
}

uint64_t waits_while_trying() {
  return waits().load(std::memory_order_relaxed);
}

}  // namespace streamfs
