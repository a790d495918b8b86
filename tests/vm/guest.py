"""streamfs in the guest, on the two set-ups that a machine has.

passthrough: DATA a namespace's generic device (NVMe commands by io_uring), META a devdax device.
block: DATA the block device, META a file on an ext4 that is mounted DAX (MAP_SYNC).
"""

import json
import re
from typing import Any

from tests.vm.machine import LBA_BYTES, SETUPS, Done, Machine

PAYLOAD = "/payload"
MOUNTPOINTS = {name: f"/mnt/{name}" for name in SETUPS}
DEVDAX = "/dev/dax0.0"  # the first NVDIMM, once it is one
PMEM = "/dev/pmem1"
DAX_FOLDER = "/dax"
# How requests come from the kernel, as status says it, and the mount option that asks for that.
TRANSPORTS = {"/dev/fuse": "transport=dev", "io_uring": "transport=io_uring"}
RUAMW = re.compile(r"\(RUAMW\): (\d+)")


class Setup:
    """A pair of devices in the guest. Devices' names change from boot to boot."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine = machine
        self.name = name
        self.point = MOUNTPOINTS[name]

    @property
    def namespace(self) -> str:
        """The block device of the SSD."""
        return f"/dev/{self.machine.namespaces[self.name]}"

    @property
    def controller(self) -> str:
        """The controller's folder in /sys."""
        return f"/sys/class/nvme/{self.machine.controllers[self.name]}"

    @property
    def data(self) -> str:
        """DATA, as streamfs is told."""
        generic = self.namespace.replace("/nvme", "/ng")
        return generic if self.name == "passthrough" else self.namespace

    @property
    def meta(self) -> str:
        """META, as streamfs is told."""
        return DEVDAX if self.name == "passthrough" else f"{DAX_FOLDER}/META"

    def prepare(self) -> None:
        """Make the NVDIMM what META is to lie on. It stays so."""
        if self.name == "passthrough":
            self.machine.run(
                "ndctl", "create-namespace", "-f", "-e", "namespace0.0", "-m", "devdax"
            )
            return
        self.machine.run("ndctl", "create-namespace", "-f", "-e", "namespace1.0", "-m", "fsdax")
        self.machine.run("mkfs.ext4", "-q", "-b", "4096", PMEM)

    def power_on(self) -> None:
        """Prepare the mount, at each boot."""
        self.machine.run("mkdir", "-p", self.point, DAX_FOLDER)
        if self.name == "block":
            self.machine.run("mount", "-o", "dax=always", PMEM, DAX_FOLDER)

    def mkfs(self, *options: str) -> str:
        """Make the filesystem; returns what mkfs said."""
        return self.machine.run("mkfs.streamfs", "-f", *options, "--meta", self.meta, self.data).out

    def mount(self, *options: str) -> None:
        """Mount in the background."""
        listed = ",".join([f"meta={self.meta}", *options])
        self.machine.run("streamfs", self.data, self.point, "-o", listed)

    def unmount(self) -> None:
        """Unmount. The next program to open the devices waits until the server has let go."""
        self.machine.run("umount", self.point)

    def fsck(self, *options: str) -> Done:
        """Check, without asserting anything."""
        words = ["fsck.streamfs", *options, "--meta", self.meta, self.data]
        return self.machine.run(*words, check=False)

    def assert_sound(self) -> None:
        """A full fsck finds nothing to complain about."""
        done = self.fsck("-n", "-f")
        assert done.code == 0, done.out + done.err

    def end(self) -> None:
        """Whatever happened, leave no mount behind."""
        self.machine.run("umount", "-l", self.point, check=False)

    def status(self) -> dict[str, Any]:
        """The mount's status, by streamctl status."""
        return self._told("streamctl", "status", "--json", self.point)

    def growth(self) -> dict[str, Any]:
        """The sizes that the mount has, and could have."""
        return self._told("streamctl", "grow", "--dry-run", "--json", self.point)

    def devices(self) -> list[dict[str, Any]]:
        """The whole machine's subsystems, by streamctl device."""
        told: list[dict[str, Any]] = self._told("streamctl", "device", "--json")["subsystems"]
        return told

    def device(self) -> dict[str, Any]:
        """The description of DATA while it is not mounted, by streamctl device."""
        return self._told("streamctl", "device", "--json", self.data)

    def writable(self) -> list[int]:
        """Bytes left in the open reclaim unit of each handle, as nvme-cli tells."""
        told = self.machine.run("nvme", "fdp", "status", self.namespace).out
        return [int(lbas) * LBA_BYTES[self.name] for lbas in RUAMW.findall(told)]

    def _told(self, *words: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.machine.run(*words).out)
        return told
