// A FAT-like filesystem on a small device, as far as its blocks go: what it writes of data and of
// metadata, bytes and all, when files are made, written and deleted. For Lee (Samsung): its
// metadata are the log of a transactional FAT, the FATs and directories.
//
//   log | FAT, FAT | directories | clusters
//
// A transaction writes a record of what will change to the log, then every block that changed.
// Thread safety: none. Memory: the metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::lab {

struct FatShape {
  uint32_t pages = 0;  // of the device, metadata included
  uint32_t page_bytes = 2048;
  uint32_t cluster_pages = 2;
  uint32_t log_pages = 32, directory_pages = 64;
};

// Where the blocks go. Pages are the device's; metadata lies below metadata_pages().
class FatDevice {
 public:
  virtual ~FatDevice() = default;
  virtual int write_metadata(uint32_t page, ConstBytes now) = 0;
  virtual int write_data(uint32_t first, uint32_t pages) = 0;
  virtual void trim(uint32_t first, uint32_t pages) = 0;
};

// Calls return errno values, 0 for none: ENOSPC, or what the device said.
class FatVolume {
 public:
  using File = uint32_t;

  // Errors: EINVAL for a device that has no room for clusters.
  static Result<FatVolume> make(const FatShape& shape, FatDevice& device);

  static uint32_t metadata_pages(const FatShape& shape);
  uint32_t free_clusters() const { return free_clusters_; }
  uint32_t cluster_bytes() const { return shape_.cluster_pages * shape_.page_bytes; }
  uint32_t clusters_of(File file) const {
    return static_cast<uint32_t>(files_[file].clusters.size());
  }

  int create(File& file);
  // `clusters` more at its end: one request and one transaction.
  int append(File file, uint32_t clusters);
  int overwrite(File file, uint32_t first_cluster, uint32_t clusters);
  // Gives its clusters back; with a trim where the filesystem says so ("logical delete").
  int remove(File file, bool trim);

 private:
  struct Entry {  // of a directory: 32 bytes, as FAT has it
    char name[11];
    uint8_t attributes, reserved[8];
    uint16_t first_high;
    uint32_t written_at;
    uint16_t first_low;
    uint32_t size;
  } __attribute__((packed));
  static_assert(sizeof(Entry) == 32);
  struct Change {
    uint32_t page = 0, first = 0, bytes = 0;
  };
  struct Open {
    std::vector<uint32_t> clusters;
    uint32_t slot = 0;  // in the directory
  };

  FatVolume(const FatShape& shape, FatDevice& device);

  uint32_t fat_pages() const;
  uint32_t directory_first() const { return shape_.log_pages + 2 * fat_pages(); }
  uint32_t page_of(uint32_t cluster) const;
  void change(uint64_t at, std::span<const std::byte> bytes);
  void set_fat(uint32_t cluster, uint32_t next);
  void set_entry(const Open& file, bool deleted);
  int commit();
  int write_log();
  int write_clusters(std::span<const uint32_t> clusters);
  uint32_t take_cluster();

  const FatShape shape_;
  FatDevice* device_;
  std::vector<std::byte> metadata_;
  std::vector<Open> files_;
  std::vector<uint32_t> unused_slots_;
  std::vector<uint32_t> fat_;  // by cluster: 0 free, else next + 1 or the end
  uint32_t free_clusters_ = 0, next_cluster_ = 0;
  std::vector<Change> changes_;  // of the transaction
  uint64_t log_at_ = 0;
  uint32_t transactions_ = 0;
};

}  // namespace streamfs::lab
