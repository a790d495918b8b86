// A place for META that is about to be written whole: a file that is made, or what is there.
// Thread safety: none; an owned value, whose region is locked. Crash: a file made here stays, and
// holds no META yet.
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
    uint64_t bytes = 0;  // of a file that is made
    bool force = false;  // whatever is there now is lost
    double wait_seconds = 10;
  };
  enum class Before : uint8_t { kThere, kEmpty, kAbsent };  // an empty file, or none
  // EEXIST: something of somebody's is there; else what opening a region returns.
  static Result<MetaPlace> open(const std::string& path, const Wish& wish);
  MetaPlace(MetaPlace&& other) noexcept;
  MetaPlace& operator=(MetaPlace&&) = delete;
  ~MetaPlace();  // unless it is kept, a file is absent or empty again if it was

  pmem::Region& region() { return *region_; }
  // For a mirror of two places. They must outlive what is made of it.
  std::unique_ptr<pmem::Region> take_region() { return std::move(region_); }
  void keep() { before_ = Before::kThere; }

 private:
  MetaPlace(std::string path, std::unique_ptr<pmem::Region> region, Before found);
  std::string path_;
  std::unique_ptr<pmem::Region> region_;
  Before before_;
};

// EMEDIUMTYPE: they are one file.
Result<void> check_apart(const std::string& meta_path, const std::string& mirror_path);

}  // namespace streamfs::pair
