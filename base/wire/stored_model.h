// The placement model as a file, which the learning daemon writes into its state directory. The
// next mount begins with it (fuse-fs/placement/stored_model.h), so that a mount without a daemon
// places as the last one with a daemon did.
//
// The numbers of vStreams outlive a mount, but a number may be used again. Each use has a
// generation (fuse-fs/placement/vstream_table.h), and the file names the use that the model knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/wire/model_table.h"

namespace streamfs::wire {

inline constexpr uint32_t kStoredModelVersion = 1;

struct StoredModel {
  uint64_t magic;
  uint32_t checksum;  // CRC32C of all bytes that follow it
  uint32_t version;
  uint32_t model_version;         // kModelVersion
  uint32_t buffer_size;           // sizeof(ModelBuffer)
  uint8_t uuid[16];               // the filesystem's
  uint16_t uses[kModelVStreams];  // the generation plus one; 0: the model does not know the vStream
  ModelBuffer model;
};
static_assert(sizeof(StoredModel) == 40 + 2 * kModelVStreams + sizeof(ModelBuffer));

// Returns the bytes that the checksum covers.
inline std::span<const std::byte> summed(const StoredModel& stored) {
  return std::as_bytes(std::span(&stored, 1)).subspan(offsetof(StoredModel, version));
}

}  // namespace streamfs::wire
