// The bytes of an emulated SSD, served as the file ssd.img. A write of part of a page reads the
// page, changes it and writes all of it, as a drive with 512-byte sectors does. All writes go to
// the default stream. In real time (SsdOptions), a call returns when the device would have
// answered. The host is not idle during a call.
//
// Thread safety: every method from any thread. Errors: those of the Ssd's methods; after an error a
// write or punch may be done in part. After a crash: see ssd/ssd.h; a page written in part is the
// old or the new page.
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

  // Returns the bytes of the range that lie on the device.
  Result<std::vector<std::byte>> read(uint64_t offset, uint64_t length);
  // Errors: also ENOSPC for a range that ends beyond the device; nothing is then written.
  Result<void> write(uint64_t offset, ConstBytes bytes);
  // Makes the bytes of the range that lie on the device zeroes. A map unit that is then all zeroes
  // is trimmed.
  Result<void> punch(uint64_t offset, uint64_t length);
  Result<void> flush();

 private:
  Result<void> write_now(uint64_t offset, ConstBytes bytes, ssd::Acknowledgement& done);
  Result<void> write_part(uint64_t offset, ConstBytes bytes, ssd::Acknowledgement& done);
  Result<void> punch_now(uint64_t offset, uint64_t length, ssd::Acknowledgement& done);
  Result<void> zero_part(uint64_t offset, uint64_t length, ssd::Acknowledgement& done);

  ssd::Ssd& ssd_;
  ssd::IdleWorker& idle_;
  // Lock order: partial_, then the SSD's own locks. Exclusive while a page is read and changed, so
  // that no other write to the page comes between; shared for writes and trims of whole pages.
  SharedMutex partial_;
};

}  // namespace streamfs::lab::ssd_sim
