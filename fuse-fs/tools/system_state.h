// Asks systemd about the state of the machine.
// Thread safety: any thread.
#pragma once

namespace streamfs::tools {

// Returns whether systemd is on its way to power-off, reboot, halt or kexec; false if systemd does
// not answer. Asks over systemd's own socket, which only root may use, also when D-Bus has ended.
bool system_is_stopping();

}  // namespace streamfs::tools
