// Asks systemd about the state of the machine.
// Thread safety: any thread.
#pragma once

namespace streamfs::tools {

// Returns whether systemd is on its way to power-off, reboot, halt or kexec; false without systemd.
// It asks over systemd's own socket, which root may use even when D-Bus has ended.
bool system_is_stopping();

}  // namespace streamfs::tools
