#include "fuse-fs/frontend/write_order.h"

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::frontend {
namespace {

// Between the threads that take two WRITEs one after the other, on a busy machine.
constexpr auto kMoment = std::chrono::milliseconds(50);
constexpr auto kPause = std::chrono::milliseconds(100);  // a lower WRITE's end wakes us before

}  // namespace

WriteOrder::Turn::Turn(WriteOrder& order, InodeId id, uint64_t offset)
    : order_(order), id_(id), offset_(offset) {
  const MutexLock lock(order_.mutex_);
  order_.served_.emplace(id.value, offset);
}

WriteOrder::Turn::~Turn() {
  {
    const MutexLock lock(order_.mutex_);
    order_.served_.erase(order_.served_.find({id_.value, offset_}));
  }
  order_.ended_.notify_all();
}

void WriteOrder::Turn::wait_until(const std::function<bool()>& may_go) {
  const auto moment = std::chrono::steady_clock::now() + kMoment;
  const MutexLock lock(order_.mutex_);
  while (!may_go()) {
    const auto now = std::chrono::steady_clock::now();
    const bool lower = order_.has_lower(id_, offset_);
    if (!lower && now >= moment) return;
    order_.ended_.wait_until(order_.mutex_, lower ? now + kPause : moment);
  }
}

bool WriteOrder::has_lower(InodeId id, uint64_t offset) const {
  const auto first = served_.lower_bound({id.value, 0});
  return first != served_.end() && first->first == id.value && first->second < offset;
}

}  // namespace streamfs::frontend
