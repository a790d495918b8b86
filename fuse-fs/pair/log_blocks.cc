#include "fuse-fs/pair/log_blocks.h"

#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"

namespace streamfs::pair {
namespace {

// The log is a ring: its blocks die sooner than all other data, and no file shares its vStream.
constexpr VStreamId kLogVStream{65535};

}  // namespace

Result<void> LogBlocks::write(BlockNo first, ConstBytes bytes) {
  const PStreamId to = stream(bytes.size() / kBlockSize);
  blockdev::IoBatch batch(device_);
  batch.write(first, bytes, {device_.placement(to), kLogVStream});
  return batch.wait();
}

PStreamId LogBlocks::stream(uint64_t /*blocks*/) {
  return PStreamId{static_cast<uint16_t>(device_.info().pstream_count - 1)};
}

Result<void> LogBlocks::read(BlockNo first, Bytes bytes) {
  blockdev::IoBatch batch(device_);
  batch.read(first, bytes);
  return batch.wait();
}

Result<void> LogBlocks::flush() {
  return device_.flush();
}

}  // namespace streamfs::pair
