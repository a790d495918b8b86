#include "fuse-fs/data/recovered_blocks.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/buffer.h"

namespace streamfs::data {

void RecoveredBlocks::take(const meta::IntentLog& log) {
  const WriteLock lock(mutex_);
  log_ = &log;
  for (const meta::IntentLog::Found& each : log.found()) found_.emplace(each.block.value, each);
}

uint64_t RecoveredBlocks::blocks() const {
  const ReadLock lock(mutex_);
  return found_.size();
}

Result<void> RecoveredBlocks::bring_home() {
  std::map<uint64_t, meta::IntentLog::Found> found;
  {
    const ReadLock lock(mutex_);
    found = found_;
  }
  if (found.empty()) return {};
  constexpr uint64_t kBlocks = 256;
  std::vector<blockdev::BlockBuffer> buffers(kBlocks);
  for (auto at = found.begin(); at != found.end();) {
    blockdev::IoBatch batch(beneath_);
    for (uint64_t i = 0; i < kBlocks && at != found.end(); ++i, ++at) {
      const Bytes bytes = std::as_writable_bytes(std::span(&buffers[i], 1));
      log_->read(at->second.place, bytes);
      batch.write(BlockNo{at->first}, bytes,
                  {beneath_.placement(kDefaultPStream), at->second.vstream});
    }
    SFS_TRY(batch.wait());
  }
  SFS_TRY(beneath_.flush());
  const WriteLock lock(mutex_);
  found_.clear();
  return {};
}

// The blocks are copied before the device is read: a block that is not found then is on the device.
void RecoveredBlocks::read(BlockNo first, Bytes bytes, blockdev::Completion done) {
  std::vector<std::pair<uint64_t, std::vector<std::byte>>> over;
  {
    const ReadLock lock(mutex_);
    const uint64_t end = first.value + bytes.size() / kBlockSize;
    for (auto at = found_.lower_bound(first.value); at != found_.end() && at->first < end; ++at) {
      over.emplace_back(at->first - first.value, kBlockSize);
      log_->read(at->second.place, over.back().second);
    }
  }
  if (over.empty()) return beneath_.read(first, bytes, std::move(done));
  beneath_.read(first, bytes,
                [bytes, over = std::move(over), done = std::move(done)](Result<void> result) {
                  for (const auto& [at, block] : over)
                    std::memcpy(&bytes[at * kBlockSize], block.data(), kBlockSize);
                  done(std::move(result));
                });
}

}  // namespace streamfs::data
