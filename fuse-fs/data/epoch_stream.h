// The pStream of an epoch, where a flush is not free.
//
// Without power-loss protection a flush makes the SSD program what each stream has open, padded to
// what it programs at once (a wordline: tens of KiB and more). Programs that fsync write a few
// blocks in between, and to pad several streams for those costs more than streams can save: so the
// first blocks of an epoch go to one pStream, that of what is new of the file that begins it: what
// tells a file's pages apart would strew its epochs. What comes after them goes where it is to go,
// as its padding is little beside it.
//
// Everyone's flushes pass here and end the epoch, the metadata log's too; nothing else is changed.
// Thread safety and crashes: see device.h; no lock.
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
  static constexpr uint64_t kTogetherBlocks = 256;  // measured by bench/apps: docs/DESIGN.md

  EpochStream(blockdev::Device& beneath, bool flush_is_free)
      : ForwardingDevice(beneath), flush_is_free_(flush_is_free) {}

  bool flush_is_free() const { return flush_is_free_; }
  // Where blocks that are written now, and were to go to `wanted`, go. An epoch that they begin
  // goes to `beginning`.
  PStreamId of(PStreamId wanted, uint64_t blocks) { return of(wanted, blocks, wanted); }
  PStreamId of(PStreamId wanted, uint64_t blocks, PStreamId beginning) {
    if (flush_is_free_) return wanted;
    uint64_t before = state_.load(std::memory_order_relaxed), stream = 0, written = 0;
    do {
      written = before & kBlocks;
      if (written >= kTogetherBlocks) return wanted;  // no line is written that writers share
      stream = written == 0 ? beginning.value : before >> kStreamShift;
    } while (!state_.compare_exchange_weak(before, stream << kStreamShift | (written + blocks),
                                           std::memory_order_relaxed));
    return PStreamId{static_cast<uint16_t>(stream)};
  }
  // What is written from here on is of the next epoch.
  Result<void> flush() override {
    state_.store(0, std::memory_order_relaxed);
    return beneath_.flush();
  }

 private:
  static constexpr int kStreamShift = 48;
  static constexpr uint64_t kBlocks = (uint64_t{1} << kStreamShift) - 1;

  const bool flush_is_free_;
  std::atomic<uint64_t> state_{0};  // its stream and, until they are enough, its blocks
};

}  // namespace streamfs::data
