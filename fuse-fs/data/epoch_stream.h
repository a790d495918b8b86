// Sends the first blocks of an epoch to one pStream, if a flush is not free and META has no intent
// log.
//
// Without power-loss protection, every flush makes the SSD pad and program each stream's open
// wordline (tens of KiB or more). A program that calls fsync() writes few blocks between two
// flushes, and padding several streams for them costs more than streams can save. So the first
// kTogetherBlocks blocks of an epoch go to one pStream: the one that new data of the epoch's first
// file would use. Later blocks of the epoch go to their own pStreams: the padding is small beside
// them.
//
// Every flush of DATA passes here and ends the epoch, the metadata log's flushes included. Other
// requests pass unchanged: the caller asks of() for the pStream and puts it into the write.
// Thread safety and crashes: see device.h. It takes no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"

namespace streamfs::data {

class EpochStream final : public blockdev::ForwardingDevice {
 public:
  static constexpr uint64_t kTogetherBlocks = 256;  // docs/EXPERIMENTS.md, "Tried without gain"

  EpochStream(blockdev::Device& beneath, bool flush_is_free)
      : ForwardingDevice(beneath), flush_is_free_(flush_is_free), joins_(!flush_is_free) {}

  bool flush_is_free() const { return flush_is_free_; }
  // Leaves each block in its own pStream: with an intent log flushes are rare, and many files' data
  // lies between two. Call it before the first write.
  void separate() { joins_ = false; }
  bool joins() const { return joins_; }
  // Returns the pStream for a write of `blocks` blocks that would go to `wanted`. If the write
  // begins an epoch, `beginning` becomes the epoch's pStream.
  PStreamId of(PStreamId wanted, uint64_t blocks) { return of(wanted, blocks, wanted); }
  PStreamId of(PStreamId wanted, uint64_t blocks, PStreamId beginning) {
    if (!joins_) return wanted;
    uint64_t before = state_.load(std::memory_order_relaxed), stream = 0, written = 0;
    do {
      written = before & kBlocks;
      if (written >= kTogetherBlocks) return wanted;  // without a store to a shared line
      stream = written == 0 ? beginning.value : before >> kStreamShift;
    } while (!state_.compare_exchange_weak(before, stream << kStreamShift | (written + blocks),
                                           std::memory_order_relaxed));
    return PStreamId{static_cast<uint16_t>(stream)};
  }
  // Ends the epoch: later writes are of the next one.
  Result<void> flush() override {
    state_.store(0, std::memory_order_relaxed);
    return beneath_.flush();
  }

 private:
  static constexpr int kStreamShift = 48;
  static constexpr uint64_t kBlocks = (uint64_t{1} << kStreamShift) - 1;

  const bool flush_is_free_;
  bool joins_;
  std::atomic<uint64_t> state_{0};  // the epoch's pStream << 48 | its blocks so far
};

}  // namespace streamfs::data
