// Reading: the device's contiguous runs in one batch, straight into the caller's memory if aligned.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/data/data_path.h"
#include "trace/trace.h"

namespace streamfs::data {
namespace {

// A run of pieces that is one run on the device, or one run of zeroes.
struct DeviceRun {
  BlockNo block;
  uint64_t count = 0;
  bool zero = false;
};

DeviceRun next_run(const std::vector<meta::Piece>& pieces, size_t& at) {
  const meta::Piece& head = pieces[at++];
  DeviceRun run{head.block, head.length, head.hole || head.unwritten};
  while (at < pieces.size()) {
    const meta::Piece& next = pieces[at];
    const bool zero = next.hole || next.unwritten;
    if (zero != run.zero || (!zero && next.block.value != run.block.value + run.count)) break;
    run.count += next.length;
    ++at;
  }
  return run;
}

}  // namespace

Result<void> DataPath::load(InodeId id, const std::vector<meta::Piece>& pieces, Bytes image,
                            bool learn) {
  struct Loaded {
    BlockNo block;
    Bytes bytes;
  };
  std::vector<Loaded> loaded;
  {
    blockdev::IoBatch batch(core_.device);
    size_t filled = 0;
    for (size_t at = 0; at < pieces.size();) {
      const DeviceRun run = next_run(pieces, at);
      const Bytes part = image.subspan(filled, run.count * kBlockSize);
      filled += part.size();
      if (run.zero) {
        std::memset(part.data(), 0, part.size());
      } else {
        if (may_wait())
          batch.read(run.block, part);
        else if (!core_.write_cache.read_cached(run.block, part))
          return would_wait();
        loaded.push_back({run.block, part});
      }
    }
    SFS_ASSERT(filled == image.size());
    SFS_TRY(batch.wait());
  }
  const uint32_t request = core_.trace.next_request();
  for (const Loaded& one : loaded) {
    core_.trace.record(trace::TraceOp::kRead, one.block, one.bytes.size() / kBlockSize,
                       kDefaultVStream, kDefaultVStream, request, kDefaultPStream);
    SFS_TRY(core_.checksums.verify(id, one.block, one.bytes, learn));
  }
  return {};
}

Result<size_t> DataPath::read(InodeId id, uint64_t offset, Bytes out) {
  if (out.empty() || offset >= kMaxFileBytes) return size_t{0};
  const uint64_t wanted = std::min<uint64_t>(out.size(), kMaxFileBytes - offset);
  const auto state = core_.states.get(id);
  const uint64_t first = offset / kBlockSize;
  const RangeLock::Guard guard(state->blocks, first, (offset + wanted - 1) / kBlockSize,
                               RangeLock::Access::kShared);
  if (!guard) return would_wait();
  SFS_ASSIGN(const meta::Attributes now, core_.engine.attributes(id));
  if (offset >= now.size) return size_t{0};
  const uint64_t length = std::min(wanted, now.size - offset);
  const uint64_t count = div_round_up(offset + length, kBlockSize) - first;
  SFS_ASSIGN(const auto pieces, core_.engine.map(id, FileBlock{first}, count));
  const bool learn = state->last_epoch.load(std::memory_order_acquire) <= core_.epochs.flushed();
  const uint64_t bytes = count * kBlockSize;
  if (blockdev::block_aligned(out.data()) && offset % kBlockSize == 0 && bytes <= out.size()) {
    SFS_TRY(load(id, pieces, out.first(bytes), learn));
    return size_t{length};
  }
  const Bytes image = blockdev::scratch(bytes);
  SFS_TRY(load(id, pieces, image, learn));
  std::memcpy(out.data(), image.data() + offset % kBlockSize, length);
  return size_t{length};
}

}  // namespace streamfs::data
