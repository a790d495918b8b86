// What streamctl shows people: tables from the JSON that --json prints as it is.
// Thread safety: pure functions but for stdout.
#pragma once

#include <nlohmann/json.hpp>

namespace streamfs::tools {

void print_status(const nlohmann::json& status);
void print_device(const nlohmann::json& status);
void print_streams(const nlohmann::json& streams);

}  // namespace streamfs::tools
