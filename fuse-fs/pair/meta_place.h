// Opens a place for a META that is about to be written as a whole: a device, or a file, which
// open() creates if it is missing.
// Thread safety: none; a value with one owner. The region's lock keeps other processes out. After a
// crash: a file that open() created or extended stays.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "pmem/region.h"

namespace streamfs::pair {

class MetaPlace {
 public:
  struct Wish {
    uint64_t bytes = 0;  // the size of a file that is missing or empty
    bool force = false;  // accept a place that holds something
    double wait_seconds = 10;
    bool declared_persistent = false;  // as in pmem::OpenOptions
  };
  enum class Before : uint8_t { kThere, kEmpty, kAbsent };  // kEmpty: a file of 0 bytes
  // Errors: EEXIST (the place holds something, and `force` is not set), those of open_region().
  static Result<MetaPlace> open(const std::string& path, const Wish& wish);
  MetaPlace(MetaPlace&& other) noexcept;
  MetaPlace& operator=(MetaPlace&&) = delete;
  // Closes the region. Unless keep() was called, also removes a file that was absent, or empties
  // one that was empty.
  ~MetaPlace();

  pmem::Region& region() { return *region_; }
  // Moves the region out. Requires: this object outlives the region, because its destructor may
  // remove the file.
  std::unique_ptr<pmem::Region> take_region() { return std::move(region_); }
  // Returns true if open() chose the size, because the file was absent or empty.
  bool is_new() const { return before_ != Before::kThere; }
  void keep() { before_ = Before::kThere; }

 private:
  MetaPlace(std::string path, std::unique_ptr<pmem::Region> region, Before found);
  std::string path_;
  std::unique_ptr<pmem::Region> region_;
  Before before_;
};

// Errors: EMEDIUMTYPE, both paths name one file.
Result<void> check_apart(const std::string& meta_path, const std::string& mirror_path);

}  // namespace streamfs::pair
