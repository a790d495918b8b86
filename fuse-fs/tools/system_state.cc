#include "fuse-fs/tools/system_state.h"

#include <stdlib.h>
#include <systemd/sd-bus.h>

#include <cstdlib>
#include <cstring>

namespace streamfs::tools {

bool system_is_stopping() {
  sd_bus* bus = nullptr;
  if (sd_bus_new(&bus) < 0) return false;
  char* state = nullptr;
  const bool asked = sd_bus_set_address(bus, "unix:path=/run/systemd/private") >= 0 &&
                     sd_bus_start(bus) >= 0 &&
                     sd_bus_get_property_string(bus, nullptr, "/org/freedesktop/systemd1",
                                                "org.freedesktop.systemd1.Manager", "SystemState",
                                                nullptr, &state) >= 0;
  const bool stopping = asked && std::strcmp(state, "stopping") == 0;
  std::free(state);
  sd_bus_close_unref(bus);
  return stopping;
}

}  // namespace streamfs::tools
