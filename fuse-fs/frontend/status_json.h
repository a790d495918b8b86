// The answers of the control socket as JSON; streamctl prints the same objects.
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/placement/placement.h"

namespace streamfs::frontend {

std::string uuid_text(const std::array<uint8_t, 16>& uuid);
std::string uuid_text(const uint8_t (&uuid)[16]);

nlohmann::json status_json(const data::Status& status, const meta::Superblock& super);
// Returns the bytes of META and DATA by purpose; null if the superblock makes no sense.
nlohmann::json layout_json(const meta::Superblock& super);
nlohmann::json maintenance_json(const data::MaintenanceRun& run);
nlohmann::json free_trim_json(const data::FreeTrim& trim);
nlohmann::json scrub_json(const data::ScrubStatus& scrub);
nlohmann::json grown_json(const data::Grown& grown, bool dry_run);
// kAll adds the names of programs, directories, extensions and labels, which are only for users who
// may see all files.
enum class Names : uint8_t { kBuiltIn, kAll };
// `device` has garbage collection's copies by pStream, if the device counts them.
nlohmann::json streams_json(const std::vector<placement::VStreamInfo>& streams,
                            const blockdev::DeviceStats& device, Names names);
// Describes a block's last write. If `birth` is nullopt, nothing is known of it, and "known" is
// false.
nlohmann::json block_json(BlockNo block, const std::optional<placement::BlockBirth>& birth);
// `classes` has one entry for each of the first chunks of DATA; the others have class 0.
nlohmann::json chunks_json(std::span<const uint8_t> classes, uint64_t data_blocks);

}  // namespace streamfs::frontend
