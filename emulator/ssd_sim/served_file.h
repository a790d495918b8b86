// The bytes of an emulated SSD: what ssd.img reads and writes as. Parts of pages are read, changed
// and written as whole pages, as a drive with 512-byte sectors does.
//
// Thread safety: every method from any thread. Crash: see emulator/ssd.h; a torn partial page is
// the old or the new page.
#pragma once

#include "base/mutex.h"
#include "emulator/ssd.h"

namespace streamfs::emulator::ssd_sim {

class ServedFile {
 public:
  explicit ServedFile(Ssd& ssd) : ssd_(ssd) {}
  uint64_t size() const { return uint64_t{ssd_.geometry().user_pages} * kPageBytes; }

  // Cut at the end of the device.
  Result<std::vector<std::byte>> read(uint64_t offset, uint64_t length);
  // ENOSPC beyond the end.
  Result<void> write(uint64_t offset, ConstBytes bytes);
  // Whole map units are trimmed; the parts at the ends are written with zeroes.
  Result<void> punch(uint64_t offset, uint64_t length);
  Result<void> flush() { return ssd_.flush(); }

 private:
  Result<void> write_part(uint64_t offset, ConstBytes bytes);
  Result<void> zero(uint64_t offset, uint64_t length);  // at most a map unit

  Ssd& ssd_;
  // Before the SSD's own locks. Exclusive while a page is read and changed, so that another write
  // to the same page does not come between.
  SharedMutex partial_;
};

}  // namespace streamfs::emulator::ssd_sim
