"""mount.streamfs and mount.fuse.streamfs: options of fstab(5), exit codes of mount(8)."""

from pathlib import Path

import pytest
from tests.integration.pairs import DRAIN_SECONDS, Pair, run, until
from tests.integration.test_tools import refused, servers_of, tool

# fstab(5) and mount(8), "FILESYSTEM-INDEPENDENT MOUNT OPTIONS".
GENERIC = (
    "async", "atime", "noatime", "auto", "noauto", "defaults", "dev", "nodev", "diratime",
    "nodiratime", "dirsync", "exec", "noexec", "group", "iversion", "noiversion", "mand", "nomand",
    "_netdev", "nofail", "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime",
    "nolazytime", "suid", "nosuid", "silent", "loud", "owner", "ro", "rw", "sync", "user",
    "nouser", "users", "comment=mine", "x-systemd.automount", "x-gvfs-show", "X-mount.mkdir",
    "uhelper=udisks2",
)  # fmt: skip


@pytest.mark.parametrize("name", ["mount.streamfs", "mount.fuse.streamfs"])
def test_the_mount_helper_knows_every_generic_option(pair: Pair, name: str) -> None:
    for option in GENERIC:
        done = tool(name, pair.data, pair.point, "-f", "-o", f"meta={pair.meta},{option}")
        assert (done.returncode, done.stderr) == (0, ""), option
    refused(1, "nosuch", tool(name, pair.data, pair.point, "-f", "-o", "nosuch"))
    refused(1, "required", tool(name, pair.data))


@pytest.mark.parametrize(
    ("asked", "there", "gone"),
    [
        ("rw", "rw", "noexec,nosuid,nodev"),
        ("ro", "ro", "rw,nosuid,nodev"),
        ("nosuid,nodev", "nosuid,nodev", "noexec"),
        ("nosuid,suid", "rw", "nosuid"),
        ("noexec,noatime", "noexec,noatime", "relatime"),
        ("relatime", "noatime", "relatime"),
        ("strictatime,atime", "noatime", "relatime"),
        ("sync,nodiratime", "sync,nodiratime", "ro"),
        ("defaults,nofail,user", "rw", "ro"),
    ],
)
def test_what_fstab_asks_for_holds(pair: Pair, asked: str, there: str, gone: str) -> None:
    try:
        words = ["-o", f"meta={pair.meta},{asked}"]
        assert tool("mount.streamfs", pair.data, pair.point, *words).returncode == 0
        rows = Path("/proc/self/mounts").read_text().splitlines()
        (row,) = [row.split() for row in rows if row.split()[1] == str(pair.point)]
        held = set(row[3].split(","))
        assert set(there.split(",")) <= held, held
        assert not set(gone.split(",")) & held, held
        assert row[0] == str(pair.data)
        run("umount", pair.point)
        until(lambda: not servers_of(pair.point), DRAIN_SECONDS, "the daemon's end")
    finally:
        run("umount", "-l", pair.point, check=False)


def test_the_mount_helper_fails_with_mounts_own_codes(pair: Pair) -> None:
    refused(32, "No such file", tool("mount.streamfs", pair.data, pair.point, "-o", "meta=/gone"))
    refused(1, "meta=PATH", tool("mount.streamfs", pair.data, pair.point))
    refused(32, "remounting", tool("mount.streamfs", "x", pair.point, "-o", "remount"))
