// Simulates the block writes of a FAT-like filesystem on a small device when files are created,
// written and deleted, with the content of its metadata. For Lee (Samsung): the metadata are the
// log of a transactional FAT, the FATs and directories.
//
//   log | FAT, FAT | directories | clusters
//
// Data is written first. A transaction then writes a record of its changes to the log, and after
// it every changed page of metadata.
// Thread safety: none. Memory: the metadata and the files' cluster lists.
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

// The device that stores the blocks. Pages are the device's; metadata lies below metadata_pages().
// Errors of its calls are errno values, 0 for none.
class FatDevice {
 public:
  virtual ~FatDevice() = default;
  virtual int write_metadata(uint32_t page, ConstBytes now) = 0;
  virtual int write_data(uint32_t first, uint32_t pages) = 0;
  virtual void trim(uint32_t first, uint32_t pages) = 0;
};

// Calls return errno values, 0 for none: ENOSPC (no cluster or directory slot), or the device's.
// After an error of the device, the volume's memory has changes that the device lacks.
class FatVolume {
 public:
  using File = uint32_t;

  // Errors: EINVAL for a device without room for a cluster, or an impossible shape.
  static Result<FatVolume> make(const FatShape& shape, FatDevice& device);

  static uint32_t metadata_pages(const FatShape& shape);
  uint32_t free_clusters() const { return free_clusters_; }
  uint32_t cluster_bytes() const { return shape_.cluster_pages * shape_.page_bytes; }
  uint32_t clusters_of(File file) const {
    return static_cast<uint32_t>(files_[file].clusters.size());
  }

  int create(File& file);
  // Adds `clusters` at the end of the file: one write for each run of neighbouring clusters, one
  // transaction. overwrite() writes existing clusters in the same way.
  int append(File file, uint32_t clusters);
  int overwrite(File file, uint32_t first_cluster, uint32_t clusters);
  // Frees the file's clusters in one transaction and then, with `trim`, trims each of them
  // ("logical delete"). The file's number must not be used again.
  int remove(File file, bool trim);

 private:
  struct Entry {  // a directory entry of FAT
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
  std::vector<uint32_t> fat_;  // by cluster: 0 free, else the next one's FAT number or the end
  uint32_t free_clusters_ = 0, next_cluster_ = 0;
  std::vector<Change> changes_;  // of the open transaction
  uint64_t log_at_ = 0;
  uint32_t transactions_ = 0;
};

}  // namespace streamfs::lab
