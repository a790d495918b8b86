#include "fuse-fs/pair/metadata_dump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/make_copy.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/snapshot.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/meta_place.h"
#include "fuse-fs/pair/open_pair.h"
#include "fuse-fs/pair/pair.h"
#include "pmem/region.h"

namespace streamfs::pair {
namespace {

constexpr uint64_t kDumpGeneration = 2;  // even: of the first snapshot area

// A dump as the snapshot's code sees it: blocks. Blocks past the end read as zeroes.
class DumpFile final : public meta::LogDevice {
 public:
  static Result<std::unique_ptr<DumpFile>> open(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (fd < 0) return Error{errno, path};
    return std::unique_ptr<DumpFile>(new DumpFile(path, fd));
  }
  ~DumpFile() override { ::close(fd_); }
  DumpFile(const DumpFile&) = delete;
  DumpFile& operator=(const DumpFile&) = delete;

  Result<void> write(BlockNo first, ConstBytes bytes) override {
    for (uint64_t at = first.value * kBlockSize; !bytes.empty();) {
      const ssize_t done = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return Error{done < 0 ? errno : EIO, path_};
      bytes = bytes.subspan(static_cast<size_t>(done));
      at += static_cast<uint64_t>(done);
    }
    return {};
  }
  Result<void> read(BlockNo first, Bytes bytes) override {
    for (uint64_t at = first.value * kBlockSize; !bytes.empty();) {
      const ssize_t done = ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return Error{errno, path_};
      if (done == 0) {
        std::memset(bytes.data(), 0, bytes.size());
        return {};
      }
      bytes = bytes.subspan(static_cast<size_t>(done));
      at += static_cast<uint64_t>(done);
    }
    return {};
  }
  Result<void> flush() override {
    if (::fdatasync(fd_) != 0) return Error{errno, path_};
    return {};
  }
  uint64_t bytes() const {
    struct stat status{};
    return ::fstat(fd_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
  }

 private:
  DumpFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

// A dump holds no data of files, and the intent log does.
Result<void> check_no_intents(const OpenPair& pair, const meta::Geometry& geometry) {
  if (geometry.intent_segments() == 0) return {};
  SFS_ASSIGN(const auto log, meta::IntentLog::open(*pair.region, geometry));
  if (log->found().empty()) return {};
  return Error{EBUSY,
               "data of files is in the intent log in META, and not on DATA yet: mount the "
               "filesystem, write to it and unmount it first"};
}

// The label goes last: a file without one is no dump.
Result<void> write_dump(const OpenPair& pair, DumpFile& file) {
  SFS_ASSIGN(const meta::Geometry geometry, meta::Geometry::from(pair.super));
  SFS_ASSIGN(const meta::Recovery recovery, meta::recover_journal(*pair.region, geometry));
  SFS_TRY(check_no_intents(pair, geometry));
  const meta::DataLabel label = meta::make_dump_label(pair.super);
  meta::SnapshotHeader header{};
  header.generation = kDumpGeneration;
  header.sequence = recovery.last_sequence;
  SFS_TRY(meta::write_snapshot(*pair.region, geometry, label, header, file,
                               meta::SnapshotScope::kWithChecksums));
  blockdev::BlockBuffer block;
  std::memset(block.bytes.data(), 0, block.bytes.size());
  std::memcpy(block.bytes.data(), &label, sizeof label);
  SFS_TRY(file.write(BlockNo{0}, block.bytes));
  return file.flush();
}

Result<meta::DataLabel> read_dump_label(DumpFile& file) {
  blockdev::BlockBuffer block;
  SFS_TRY(file.read(BlockNo{0}, block.bytes));
  return meta::parse_dump_label(block.bytes);
}

// Whether this dump still says what DATA holds.
Result<void> check_current(const meta::Superblock& dumped, blockdev::Device& device,
                           const std::string& file) {
  SFS_ASSIGN(const meta::DataLabel label, read_label(device));
  SFS_TRY(check_pair(dumped, label, device.info()));
  SFS_ASSIGN(const std::optional<Attached> attached, read_attachments(device));
  const bool before = is_older(dumped, attached);
  if (!attached || (!before && !is_ahead(dumped, attached))) return {};
  return Error{EMEDIUMTYPE,
               fmt::format("{} was dumped {} {} was mounted or unmounted again ({}, now {}): files "
                           "could show each other's bytes",
                           file, before ? "before" : "after", device.info().path,
                           dumped.attachments, attached->count)};
}

// META's class is what META is, wherever the dump came from.
Result<meta::Superblock> adopt_class(pmem::Region& region, pmem::MetaClass meta_class) {
  SFS_ASSIGN(meta::Superblock super, meta::load_superblock(region, true));
  super.meta_class = static_cast<uint8_t>(meta_class);
  SFS_TRY(meta::store_superblock(region, super));
  SFS_TRY(region.sync());
  ++super.generation;
  return super;
}

// As many places are named as META is kept in.
Result<void> check_places(const meta::Superblock& dumped, const std::string& meta_path,
                          const RestoreDumpOptions& options) {
  const bool twice = (dumped.features & meta::kFeatureMirror) != 0;
  if (!twice && !options.mirror_path.empty())
    return Error{EMEDIUMTYPE, "META was kept once: leave the mirror out"};
  if (twice && options.mirror_path.empty() && !options.degraded) {
    return Error{
        EMEDIUMTYPE,
        "META was kept twice: name the place of the other copy, too (--mirror PATH), or go "
        "on without it (--degraded)"};
  }
  return options.mirror_path.empty() ? Result<void>() : check_apart(meta_path, options.mirror_path);
}

Result<MetaPlace> make_target(const std::string& path, const meta::Superblock& dumped,
                              const RestoreDumpOptions& options) {
  SFS_ASSIGN(auto place,
             MetaPlace::open(path, {dumped.meta_size, options.force, options.wait_seconds,
                                    (dumped.features & meta::kFeatureDeclared) != 0}));
  const uint64_t bytes = place.region().size();
  if (bytes >= dumped.meta_size) return place;
  return Error{ENOSPC,
               fmt::format("{} has {} bytes, {} are needed", path, bytes, dumped.meta_size)};
}

// Not in step with a copy that turns up again, and counts for more.
Result<void> outrank(meta::Superblock& dumped, blockdev::Device& device) {
  SFS_ASSIGN(const std::optional<Attached> attached, read_attachments(device));
  if (attached) dumped.attachments = attached->count;
  ++dumped.attachments;
  dumped.mirror_token = draw_token(attached ? attached->mirror_token : dumped.mirror_token);
  return {};
}

}  // namespace

Result<MetadataDump> dump_metadata(const std::string& meta_path, const std::string& data,
                                   const std::string& file) {
  PairOptions options;
  options.read_only = true;
  options.degraded = true;  // one copy of a META that is kept twice says it all
  SFS_ASSIGN(const OpenPair pair, open_pair(meta_path, data, options));
  SFS_ASSIGN(const auto out, DumpFile::open(file, O_RDWR | O_CREAT | O_EXCL));
  const Result<void> written = write_dump(pair, *out);
  if (!written) {
    (void)::unlink(file.c_str());
    return written.error();
  }
  return MetadataDump{pair.super, out->bytes()};
}

Result<MetadataDump> restore_dump(const std::string& file, const std::string& meta_path,
                                  const std::string& data, const RestoreDumpOptions& options) {
  SFS_ASSIGN(const auto in, DumpFile::open(file, O_RDONLY));
  SFS_ASSIGN(meta::DataLabel label, read_dump_label(*in));
  blockdev::OpenOptions open;
  open.wait_seconds = options.wait_seconds;
  SFS_ASSIGN(const auto device, blockdev::open_device(data, open));
  SFS_TRY(check_current(label.geometry, *device, file));
  SFS_TRY(check_places(label.geometry, meta_path, options));
  SFS_ASSIGN(auto first, make_target(meta_path, label.geometry, options));
  std::optional<MetaPlace> second;
  pmem::MetaClass meta_class = first.region().meta_class();
  if (!options.mirror_path.empty()) {
    SFS_ASSIGN(auto place, make_target(options.mirror_path, label.geometry, options));
    second.emplace(std::move(place));
    meta_class = std::max(meta_class, second->region().meta_class());
  }
  if ((label.geometry.features & meta::kFeatureMirror) != 0)
    SFS_TRY(outrank(label.geometry, *device));
  SFS_TRY(meta::restore_from_log(first.region(), label, *in));
  SFS_ASSIGN(const meta::Superblock super, adopt_class(first.region(), meta_class));
  first.keep();
  if (second) {
    SFS_TRY(meta::make_copy(first.region(), second->region(), super));
    second->keep();
  }
  return MetadataDump{label.geometry, in->bytes()};
}

}  // namespace streamfs::pair
