// The answers of the control socket as JSON; streamctl prints the same objects.
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuse-fs/data/filesystem.h"

namespace streamfs::frontend {

inline constexpr int kStatusSchema = 1;

std::string uuid_text(const std::array<uint8_t, 16>& uuid);
std::string uuid_text(const uint8_t (&uuid)[16]);

nlohmann::json status_json(const data::Status& status, const meta::Superblock& super);
nlohmann::json scrub_json(const data::ScrubStatus& scrub);
nlohmann::json grown_json(const data::Grown& grown, bool dry_run);
nlohmann::json streams_json(const std::vector<placement::VStreamInfo>& streams);

}  // namespace streamfs::frontend
