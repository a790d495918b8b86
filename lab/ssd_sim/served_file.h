// The bytes of an emulated SSD, served as the file ssd.img. Parts of pages are read, changed and
// written as whole pages, as a drive with 512-byte sectors does. In real time (SsdOptions), a call
// returns when the device would have answered. The host is not idle during a call.
//
// Thread safety: every method from any thread. Crash: see ssd/ssd.h; a torn partial page is
// the old or the new page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/idle_worker.h"
#include "ssd/real_time.h"
#include "ssd/ssd.h"

namespace streamfs::lab::ssd_sim {

class ServedFile {
 public:
  ServedFile(ssd::Ssd& ssd, ssd::IdleWorker& idle) : ssd_(ssd), idle_(idle) {}
  uint64_t size() const { return uint64_t{ssd_.geometry().user_pages} * ssd::kPageBytes; }
  uint64_t map_unit_bytes() const { return ssd_.geometry().map_unit_pages * ssd::kPageBytes; }

  // Cut at the end of the device.
  Result<std::vector<std::byte>> read(uint64_t offset, uint64_t length);
  // ENOSPC beyond the end.
  Result<void> write(uint64_t offset, ConstBytes bytes);
  // Reads as zeroes afterwards. Map units that hold nothing else are trimmed.
  Result<void> punch(uint64_t offset, uint64_t length);
  Result<void> flush();

 private:
  Result<void> write_now(uint64_t offset, ConstBytes bytes, ssd::Acknowledgement& done);
  Result<void> write_part(uint64_t offset, ConstBytes bytes, ssd::Acknowledgement& done);
  Result<void> punch_now(uint64_t offset, uint64_t length, ssd::Acknowledgement& done);
  Result<void> zero_part(uint64_t offset, uint64_t length, ssd::Acknowledgement& done);

  ssd::Ssd& ssd_;
  ssd::IdleWorker& idle_;
  // Before the SSD's own locks. Exclusive while a page is read and changed, so that another write
  // to the same page does not come between.
  SharedMutex partial_;
};

}  // namespace streamfs::lab::ssd_sim
