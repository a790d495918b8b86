// Tells whether this machine runs on its battery.
// Thread safety: reads files only.
#pragma once

#include <string>

namespace streamfs {

// Returns true if a battery of the machine discharges, or if it has a battery and a mains, USB or
// wireless supply of which none is online. Batteries of peripherals do not count. Returns false if
// nothing is known.
bool on_battery(const std::string& folder = "/sys/class/power_supply");

}  // namespace streamfs
