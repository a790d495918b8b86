// Reads the model that the daemon stored (base/wire/stored_model.h). Its bytes are input: another
// program may have written the file, or damaged it.
// Thread safety: any thread. After a crash: the daemon replaces the file as a whole, so it is the
// last model or the one before it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/wire/stored_model.h"

namespace streamfs::placement {

// Returns the path of a filesystem's model: `path`, or if that is a folder, the file in it that
// the daemon names after the filesystem.
std::string stored_model_path(const std::string& path, const std::array<uint8_t, 16>& uuid);

// Reads the file and checks everything but the model itself (learning/placement_model.h).
// Errors: those of open(2) and read(2); EINVAL, with the reason, for a file that is no model of
// this version and filesystem; EPERM if other users may change the file.
Result<std::unique_ptr<wire::StoredModel>> read_stored_model(const std::string& path,
                                                             const std::array<uint8_t, 16>& uuid);

}  // namespace streamfs::placement
