// Prints streamctl's tables, from the JSON that --json prints as it is.
// Thread safety: pure functions but for stdout.
#pragma once

#include <nlohmann/json.hpp>

#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

void print_status(const nlohmann::json& status, const Style& style);
void print_device(const nlohmann::json& status, const Style& style);
void print_nvme_list(const nlohmann::json& listed, const Style& style);
// Prints blockdev::describe() of a device that is not mounted.
void print_described(const nlohmann::json& device, const Style& style);
// Prints the sizes before and after growing, and a line if nothing was changed.
void print_grown(const nlohmann::json& grown, const Style& style);
void print_maintenance(const nlohmann::json& run, const Style& style);
void print_scrub(const nlohmann::json& scrub, const Style& style);

}  // namespace streamfs::tools
