#include "base/power_supply.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace streamfs {
namespace {

std::string word_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

}  // namespace

bool on_battery(const std::string& folder) {
  bool battery = false, discharging = false, supply = false, online = false;
  std::error_code failed;
  for (const auto& each : std::filesystem::directory_iterator(folder, failed)) {
    const std::string type = word_in(each.path() / "type");
    if (word_in(each.path() / "scope") == "Device") continue;  // a mouse's
    if (type == "Battery") {
      battery = true;
      discharging = discharging || word_in(each.path() / "status") == "Discharging";
    } else if (type == "Mains" || type == "USB" || type == "Wireless") {
      supply = true;
      online = online || word_in(each.path() / "online") == "1";
    }
  }
  return discharging || (battery && supply && !online);
}

}  // namespace streamfs
