#include "fuse-fs/data/meta_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "fuse-fs/data/signature.h"
#include "fuse-fs/meta/engine.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

bool exists(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && (!S_ISREG(status.st_mode) || status.st_size > 0);
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
  open.create = !exists(path);
  open.size = open.create ? wish.bytes : 0;
  SFS_ASSIGN(auto region, pmem::open_region(path, open));
  MetaPlace place(path, std::move(region), open.create);
  if (!wish.force) SFS_TRY(check_empty(place.region(), path));
  return place;
}

MetaPlace::MetaPlace(std::string path, std::unique_ptr<pmem::Region> region, bool made)
    : path_(std::move(path)), region_(std::move(region)), made_(made) {}

MetaPlace::MetaPlace(MetaPlace&& other) noexcept
    : path_(std::move(other.path_)),
      region_(std::move(other.region_)),
      made_(std::exchange(other.made_, false)) {}

MetaPlace::~MetaPlace() {
  if (made_) (void)::unlink(path_.c_str());
}

Result<void> check_apart(const std::string& meta_path, const std::string& mirror_path) {
  std::error_code none;
  if (meta_path != mirror_path && !std::filesystem::equivalent(meta_path, mirror_path, none))
    return {};
  return Error{EMEDIUMTYPE, "META and its mirror are the same; give two places"};
}

}  // namespace streamfs::data
