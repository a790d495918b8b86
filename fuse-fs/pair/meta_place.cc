#include "fuse-fs/pair/meta_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/signature.h"
#include "pmem/region.h"

namespace streamfs::pair {
namespace {

MetaPlace::Before found_at(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return MetaPlace::Before::kAbsent;
  const bool empty = S_ISREG(status.st_mode) && status.st_size == 0;
  return empty ? MetaPlace::Before::kEmpty : MetaPlace::Before::kThere;
}

Result<void> check_empty(pmem::Region& region, const std::string& path) {
  const auto super = meta::load_superblock(region, false);
  if (super.ok() || super.error().code == EIO || super.error().code == EMEDIUMTYPE)
    return Error{EEXIST, path + " holds a streamfs filesystem; -f overwrites it"};
  SFS_ASSIGN(const auto holds, signature_of(region));
  if (holds) return Error{EEXIST, path + " holds " + *holds + "; -f overwrites it"};
  return {};
}

}  // namespace

Result<MetaPlace> MetaPlace::open(const std::string& path, const Wish& wish) {
  pmem::OpenOptions open;
  open.wait_seconds = wish.wait_seconds;
  open.declared_persistent = wish.declared_persistent;
  const Before found = found_at(path);
  open.create = found != Before::kThere;
  open.size = open.create ? wish.bytes : 0;
  SFS_ASSIGN(auto region, pmem::open_region(path, open));
  MetaPlace place(path, std::move(region), found);
  if (wish.force) return place;
  const Result<void> empty = check_empty(place.region(), path);
  if (empty) return place;
  place.keep();  // the content is somebody's; if it is new, it came during the wait for the lock
  return empty.error();
}

MetaPlace::MetaPlace(std::string path, std::unique_ptr<pmem::Region> region, Before found)
    : path_(std::move(path)), region_(std::move(region)), before_(found) {}

MetaPlace::MetaPlace(MetaPlace&& other) noexcept
    : path_(std::move(other.path_)),
      region_(std::move(other.region_)),
      before_(std::exchange(other.before_, Before::kThere)) {}

MetaPlace::~MetaPlace() {
  region_.reset();
  if (before_ == Before::kAbsent) (void)::unlink(path_.c_str());
  if (before_ == Before::kEmpty) (void)!::truncate(path_.c_str(), 0);
}

Result<void> check_apart(const std::string& meta_path, const std::string& mirror_path) {
  std::error_code none;
  if (meta_path != mirror_path && !std::filesystem::equivalent(meta_path, mirror_path, none))
    return {};
  return Error{EMEDIUMTYPE, "META and its mirror are the same; give two places"};
}

}  // namespace streamfs::pair
