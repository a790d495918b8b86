// What streamctl shows people: tables from the JSON that --json prints as it is.
// Thread safety: pure functions but for stdout.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace streamfs::tools {

// One line of a table stays one: what cannot be printed becomes "?".
std::string printable(std::string text);

void print_status(const nlohmann::json& status);
void print_device(const nlohmann::json& status);
void print_nvme_list(const nlohmann::json& listed);
void print_described(const nlohmann::json& device);  // one that is not mounted
// Its last line says whether all was sound.
void print_grown(const nlohmann::json& grown);
void print_maintenance(const nlohmann::json& run);
void print_scrub(const nlohmann::json& scrub);
void print_streams(const nlohmann::json& streams);

}  // namespace streamfs::tools
