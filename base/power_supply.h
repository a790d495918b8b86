// Whether this machine runs on its battery.
// Thread safety: reads files only. Crash: nothing is kept.
#pragma once

#include <string>

namespace streamfs {

// A battery of the machine's own discharges, or there is one and no mains or USB supply is online.
// False where nothing is known: most machines have no battery.
bool on_battery(const std::string& folder = "/sys/class/power_supply");

}  // namespace streamfs
