// The answers of the control socket as JSON; streamctl prints the same objects.
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/frontend/op_times.h"
#include "fuse-fs/placement/placement.h"

namespace streamfs::frontend {

std::string uuid_text(const std::array<uint8_t, 16>& uuid);
std::string uuid_text(const uint8_t (&uuid)[16]);

nlohmann::json status_json(const data::Status& status, const meta::Superblock& super);
// What of META and DATA is for what: bytes by name. Null where the superblock makes no sense.
nlohmann::json layout_json(const meta::Superblock& super);
nlohmann::json maintenance_json(const data::MaintenanceRun& run);
nlohmann::json free_trim_json(const data::FreeTrim& trim);
nlohmann::json scrub_json(const data::ScrubStatus& scrub);
nlohmann::json grown_json(const data::Grown& grown, bool dry_run);
// Names of programs, directories, extensions and labels are for who may see all files.
enum class Names : uint8_t { kBuiltIn, kAll };
// `device`: of which garbage collection's copies by pStream are told, where it knows them.
nlohmann::json streams_json(const std::vector<placement::VStreamInfo>& streams,
                            const blockdev::DeviceStats& device, Names names);
// Of operations that were asked for at least once.
nlohmann::json metrics_json(const OpTimes& ops);
// Nothing is known of a block: "known" is false.
nlohmann::json block_json(BlockNo block, const std::optional<placement::BlockBirth>& birth);

}  // namespace streamfs::frontend
