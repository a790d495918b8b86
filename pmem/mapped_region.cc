// The real regions: devdax, a file on a DAX filesystem, and a plain file as emulation.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/holder.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/address_range.h"
#include "pmem/bus_errors.h"
#include "pmem/flush_instruction.h"
#include "pmem/persistence_domain.h"
#include "pmem/region.h"

namespace streamfs::pmem {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// The class of a mapping, and whether a fence needs lines to be written back.
struct Nature {
  MetaClass meta_class = MetaClass::kVolatile;
  bool write_back = false;
  std::string medium;  // for messages
};

// How all parts of a file are mapped.
struct Mapping {
  int protection = PROT_READ | PROT_WRITE;
  int flags = MAP_PRIVATE;
  Nature nature;
  uint64_t lost = 0;  // pages that were not there to be copied
};

class MappedRegion final : public Region {
 public:
  MappedRegion(FileDescriptor fd, std::string path, AddressRange addresses, BusErrorWatch watch,
               uint64_t size, const Mapping& mapping)
      : fd_(std::move(fd)),
        path_(std::move(path)),
        addresses_(std::move(addresses)),
        watch_(std::move(watch)),
        map_(addresses_.base()),
        mapping_(mapping),
        write_back_(choose_write_back()) {
    attach(map_, size);
  }
  MetaClass meta_class() const override { return mapping_.nature.meta_class; }
  bool fences_for_all() const override { return meta_class() == MetaClass::kPersistent; }
  std::string medium() const override;
  uint64_t lost() const override { return mapping_.lost + watch_.lost(); }
  Result<uint64_t> medium_bytes() override;
  bool extensible() const override;

 protected:
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t offset) override {
    if (mapping_.nature.write_back) write_back_(map_ + offset);
  }
  // After a kill of the process every store is kept, in program order. Only persistent memory needs
  // a fence.
  void drain() override {
    if (meta_class() == MetaClass::kPersistent) store_fence();
  }
  Result<void> make_durable() override {
    if (meta_class() == MetaClass::kSynced) SFS_TRY(group_msync());
    if (lost() == 0) return {};
    return Error{EIO, std::to_string(lost()) + " pages of " + path_ + " are lost"};
  }
  Result<void> extend(uint64_t size) override;

 private:
  Result<void> lengthen_file(uint64_t old_length, uint64_t size);
  // Group commit: an msync serves every caller that arrived before it began.
  Result<void> group_msync() {
    std::unique_lock lock(group_mutex_);
    const uint64_t wanted = ++requested_;
    while (finished_ < wanted) {
      if (running_) {
        group_done_.wait(lock);
        continue;
      }
      running_ = true;
      const uint64_t covers = requested_;
      lock.unlock();
      const int code = msync(map_, size(), MS_SYNC) == 0 ? 0 : errno;
      lock.lock();
      running_ = false;
      finished_ = covers;
      if (code != 0) last_error_ = code;
      group_done_.notify_all();
    }
    if (last_error_ != 0) return Error{last_error_, "msync of " + path_};
    return {};
  }

  FileDescriptor fd_;
  std::string path_;
  AddressRange addresses_;
  BusErrorWatch watch_;  // declared after the addresses, so that it ends before they do
  std::byte* map_;
  Mapping mapping_;
  WriteBackLine write_back_;
  std::mutex group_mutex_;  // leaf
  std::condition_variable group_done_;
  uint64_t requested_ = 0, finished_ = 0;
  bool running_ = false;
  int last_error_ = 0;  // sticky: after a failed msync no data may be called durable
};

Result<void> lock_with_wait(int fd, const std::string& path, double wait_seconds) {
  for (int tries = static_cast<int>(std::ceil(wait_seconds * 20));
       flock(fd, LOCK_EX | LOCK_NB) != 0; --tries) {
    if (errno != EWOULDBLOCK) return Error{errno, "locking " + path};
    if (tries <= 0) return Error{EBUSY, path + " is in use by " + lock_holder(fd)};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return {};
}

std::string sysfs_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the size of a devdax device, which is in sysfs.
Result<uint64_t> devdax_size(const struct stat& st) {
  const std::string size = sysfs_line("/sys/dev/char/" + std::to_string(major(st.st_rdev)) + ":" +
                                      std::to_string(minor(st.st_rdev)) + "/size");
  const uint64_t bytes = std::strtoull(size.c_str(), nullptr, 0);
  if (bytes == 0) return Error{EINVAL, "not a devdax device"};
  return bytes;
}

// Returns the nature of a DAX mapping. ADR covers the memory controller, eADR the caches too.
Nature nature_of_dax(const struct stat& st) {
  const bool is_char = S_ISCHR(st.st_mode);
  const std::string domain =
      persistence_domain("/sys", is_char ? "char" : "block", is_char ? st.st_rdev : st.st_dev);
  const std::string medium = (is_char ? "devdax, " : "DAX file, ") + domain;
  if (domain == kDomainCpuCache) return {MetaClass::kPersistent, false, medium};
  if (domain == kDomainMemoryController) return {MetaClass::kPersistent, true, medium};
  return {MetaClass::kVolatile, false, medium};
}

// Returns the nature of a mapping of the page cache, which needs no write-back instructions: a kill
// of the process keeps the pages, and a power cut needs sync().
Nature nature_of_plain_file(int fd) {
  struct statfs fs{};
  if (fstatfs(fd, &fs) != 0) return {MetaClass::kVolatile, false, "file"};
  const bool in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
  if (in_memory) return {MetaClass::kVolatile, false, "file in memory"};
  return {MetaClass::kSynced, false, "file"};
}

Result<uint64_t> file_size(int fd, const std::string& path, const OpenOptions& options,
                           const struct stat& st) {
  auto size = static_cast<uint64_t>(st.st_size);
  if (options.size > size) {
    if (ftruncate(fd, static_cast<off_t>(options.size)) != 0) return Error{errno, "sizing " + path};
    // If the file had holes, a store to one on a full disk would raise SIGBUS.
    const int code = posix_fallocate(fd, 0, static_cast<off_t>(options.size));
    if (code != 0) return Error{code, "reserving space for " + path};
    size = options.size;
  }
  if (size == 0) return Error{EINVAL, path + " is empty"};
  return round_down(size, kBlockSize);
}

Nature nature_of(int fd, const struct stat& st) {
  return S_ISCHR(st.st_mode) ? nature_of_dax(st) : nature_of_plain_file(fd);
}

// Returns whether the file accepts this kind of mapping. It is tried at an address that the kernel
// chooses, because a refused MAP_FIXED unmaps its place first, and another thread's mapping may
// then get that place.
bool accepts(int fd, uint64_t size, const Mapping& mapping) {
  void* tried = mmap(nullptr, size, mapping.protection, mapping.flags, fd, 0);
  return tried != MAP_FAILED && munmap(tried, size) == 0;
}

bool is_zero(const std::byte* block) {
  return *block == std::byte{0} && std::memcmp(block, block + 1, kBlockSize - 1) == 0;
}

// Copies a devdax device, which takes no private mapping. Only blocks that are not zero are copied;
// the rest of the copy is zeroes already, and takes no memory. Returns how many pages could not be
// read.
Result<uint64_t> copy_device(int fd, AddressRange& to, uint64_t size) {
  SFS_TRY(to.map(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1));
  SFS_ASSIGN(AddressRange from, AddressRange::reserve(size));
  SFS_TRY(from.map(0, size, PROT_READ, MAP_SHARED, fd));
  SFS_ASSIGN(const BusErrorWatch watch, BusErrorWatch::over(from.base(), size));
  for (uint64_t at = 0; at < size; at += kBlockSize) {
    if (!is_zero(from.base() + at)) std::memcpy(to.base() + at, from.base() + at, kBlockSize);
  }
  return watch.lost();
}

// Returns the nature of memory that its owner has declared persistent.
Result<Nature> declared(const Nature& found, const std::string& path) {
  if (found.meta_class == MetaClass::kPersistent) return found;
  if (found.meta_class == MetaClass::kSynced)
    return Error{EINVAL, path + " is a file on a disk, and only memory can be declared persistent"};
  return Nature{MetaClass::kPersistent, true, found.medium + ", declared persistent"};
}

// Chooses how to map the file: with MAP_SYNC if that is accepted. A read-only mapping tries it too,
// because the class of the medium does not depend on the access.
Mapping choose_mapping(int fd, uint64_t size, bool read_only, const struct stat& st) {
  Mapping mapping;
  mapping.flags = MAP_SHARED_VALIDATE | MAP_SYNC;
  Mapping asked = mapping;
  if (read_only) asked.protection = PROT_READ;
  const bool is_dax = accepts(fd, size, asked);
  mapping.nature = is_dax ? nature_of_dax(st) : nature_of(fd, st);
  if (!is_dax) mapping.flags = MAP_SHARED;
  if (read_only) mapping.flags = MAP_PRIVATE;
  return mapping;
}

std::string MappedRegion::medium() const {
  const Nature& nature = mapping_.nature;
  return nature.write_back ? nature.medium + ", " + write_back_name(write_back_) : nature.medium;
}

Result<uint64_t> MappedRegion::medium_bytes() {
  struct stat st{};
  if (fstat(fd_.get(), &st) != 0) return Error{errno, path_};
  if (S_ISCHR(st.st_mode)) return devdax_size(st);
  return round_down(static_cast<uint64_t>(st.st_size), kBlockSize);
}

bool MappedRegion::extensible() const {
  struct stat st{};
  return fstat(fd_.get(), &st) == 0 && S_ISREG(st.st_mode);
}

// Lengthens the file by all of the bytes or by none. The reservation is durable on return.
Result<void> MappedRegion::lengthen_file(uint64_t old_length, uint64_t size) {
  // posix_fallocate may take all that is left before it fails, so that other programs would find a
  // full disk.
  struct statvfs host{};
  if (size > old_length && fstatvfs(fd_.get(), &host) == 0 &&
      uint64_t{host.f_bavail} * host.f_frsize < size - old_length) {
    return Error{ENOSPC, "extending " + path_};
  }
  const int code = posix_fallocate(fd_.get(), 0, static_cast<off_t>(size));
  if (code == 0 && fsync(fd_.get()) == 0) return {};
  const Error failed{code != 0 ? code : errno, "extending " + path_};
  if (old_length < size && ftruncate(fd_.get(), static_cast<off_t>(old_length)) != 0) {
    return Error{errno, "giving back the room in " + path_};
  }
  return failed;
}

Result<void> MappedRegion::extend(uint64_t size) {
  if (size > addresses_.bytes()) {
    return Error{ENOSPC, "META is mapped with room for " + std::to_string(addresses_.bytes()) +
                             " bytes; mount again before it grows further"};
  }
  struct stat st{};
  if (fstat(fd_.get(), &st) != 0) return Error{errno, path_};
  if (S_ISCHR(st.st_mode)) {
    SFS_ASSIGN(const uint64_t device, devdax_size(st));
    if (device < size) return Region::extend(size);
  } else {
    SFS_TRY(lengthen_file(static_cast<uint64_t>(st.st_size), size));
  }
  const uint64_t from = this->size();
  return addresses_.map(from, size - from, mapping_.protection, mapping_.flags, fd_.get());
}

}  // namespace

namespace {

struct Opened {
  FileDescriptor fd;
  bool created = false;
};

Result<Opened> open_or_create(const std::string& path, const OpenOptions& options) {
  const int access = (options.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC;
  const int made = options.create ? open(path.c_str(), access | O_CREAT | O_EXCL, 0600) : -1;
  if (made >= 0) return Opened{FileDescriptor(made), true};
  FileDescriptor fd(open(path.c_str(), access));
  if (fd.get() < 0) return Error{errno, "opening META " + path};
  return Opened{std::move(fd), false};
}

// Removes a file that was created, and empties a file that was empty, unless kept.
// Requires: the lock is held, so that no other process has put anything into the file.
class FileBefore {
 public:
  FileBefore(std::string path, const Opened& opened, const struct stat& st)
      : path_(std::move(path)),
        fd_(opened.fd.get()),
        created_(opened.created),
        undone_(S_ISREG(st.st_mode) && st.st_size == 0) {}
  FileBefore(const FileBefore&) = delete;
  FileBefore& operator=(const FileBefore&) = delete;
  ~FileBefore() {
    if (undone_ && created_) (void)::unlink(path_.c_str());
    if (undone_ && !created_) (void)!::ftruncate(fd_, 0);
  }
  void keep() { undone_ = false; }

 private:
  const std::string path_;
  const int fd_;
  const bool created_;
  bool undone_;
};

}  // namespace

Result<std::unique_ptr<Region>> open_region(const std::string& path, const OpenOptions& options) {
  SFS_ASSIGN(Opened opened, open_or_create(path, options));
  FileDescriptor& fd = opened.fd;
  struct stat st{};
  if (fstat(fd.get(), &st) != 0) return Error{errno, "opening META " + path};
  if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
    return Error{EINVAL, "META " + path + " is neither a file nor a devdax device"};
  }
  if (!options.read_only) SFS_TRY(lock_with_wait(fd.get(), path, options.wait_seconds));
  if (fstat(fd.get(), &st) != 0) return Error{errno, "opening META " + path};
  FileBefore undo(path, opened, st);
  uint64_t size = 0;
  if (S_ISCHR(st.st_mode)) {
    SFS_ASSIGN(size, devdax_size(st));
  } else {
    SFS_ASSIGN(size, file_size(fd.get(), path, options, st));
  }
  if (size == 0) return Error{EINVAL, "META " + path + " is smaller than 4 KiB"};
  SFS_ASSIGN(AddressRange addresses, AddressRange::reserve(size));
  Mapping mapping = choose_mapping(fd.get(), size, options.read_only, st);
  if (options.declared_persistent) {
    SFS_ASSIGN(mapping.nature, declared(mapping.nature, path));
  }
  if (options.read_only && S_ISCHR(st.st_mode)) {
    SFS_ASSIGN(mapping.lost, copy_device(fd.get(), addresses, size));
  } else {
    SFS_TRY(addresses.map(0, size, mapping.protection, mapping.flags, fd.get()));
  }
  SFS_ASSIGN(BusErrorWatch watch, BusErrorWatch::over(addresses.base(), addresses.bytes()));
  undo.keep();
  return std::unique_ptr<Region>(std::make_unique<MappedRegion>(
      std::move(fd), path, std::move(addresses), std::move(watch), size, mapping));
}

}  // namespace streamfs::pmem
