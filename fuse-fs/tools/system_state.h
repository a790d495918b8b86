// What systemd says the machine is doing.
// Thread safety: any thread. Crash: nothing is kept.
#pragma once

namespace streamfs::tools {

// systemd is on its way to power-off, reboot, halt or kexec. False without systemd. Asked over
// systemd's own socket, which root may use even when D-Bus has ended.
bool system_is_stopping();

}  // namespace streamfs::tools
