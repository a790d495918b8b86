"""The units as they are installed: what systemd-analyze says of them. No systemd runs."""

import re
import shutil
from pathlib import Path

import pytest
from tests.systemd.world import ROOT, World

UNITS = sorted(path.name for path in (ROOT / "systemd").glob("*@.*"))
SERVICES = [name for name in UNITS if name.endswith(".service")]
# The most exposure by systemd's own measure, of 10. The mount itself needs CAP_SYS_ADMIN and the
# machine's mount namespace, which most of the measure is about; the others need nothing.
EXPOSURE_MOST = {
    "streamfs@.service": 4.5,
    "classifierd@.service": 1.5,
    "streamfs-metrics@.service": 1.6,
}
EXPOSURE_MOST_OF_OTHERS = 2.0


def test_all_are_installed_as_they_stand_here(off: World) -> None:
    for name in UNITS:
        installed = off.upper / "usr/lib/systemd/system" / name
        assert installed.read_text() == (ROOT / "systemd" / name).read_text()
    assert (off.upper / "usr/lib/systemd/system-preset/90-streamfs.preset").exists()
    for name in ("mount.streamfs", "mount.fuse.streamfs", "fsck.streamfs", "mkfs.streamfs"):
        assert off.chrooted("test", "-x", f"/sbin/{name}").returncode == 0


def test_systemd_analyze_verifies_them(off: World) -> None:
    units = [f"/usr/lib/systemd/system/{name.replace('@.', '@srv-data.')}" for name in UNITS]
    done = off.chrooted("systemd-analyze", "verify", "--man=no", "--recursive-errors=yes", *units)
    assert done.stdout + done.stderr == ""


def test_a_unit_that_is_wrong_would_be_noticed(off: World) -> None:
    wrong = "/usr/lib/systemd/system/wrong@.service"
    text = (ROOT / "systemd/streamfs@.service").read_text()
    off.write(wrong, text.replace("ExecStart=streamfs", "ExecStart=streamfsx"))
    done = off.chrooted("systemd-analyze", "verify", "--man=no", wrong, check=False)
    (off.upper / wrong.lstrip("/")).unlink()
    assert "streamfsx" in done.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_may_reach_is_limited(off: World, name: str) -> None:
    most = EXPOSURE_MOST.get(name, EXPOSURE_MOST_OF_OTHERS)
    path = f"/usr/lib/systemd/system/{name}"
    words = ("systemd-analyze", "security", "--offline=true", f"--threshold={int(most * 10)}", path)
    done = off.chrooted(*words, check=False)
    said = re.search(r"exposure level for .*: ([0-9.]+)", done.stdout)
    assert said is not None, done.stdout + done.stderr
    assert done.returncode == 0, said[0]


def test_users_folders_and_presets_are_what_systemd_reads(off: World) -> None:
    off.chrooted("systemd-sysusers")
    assert off.chrooted("id", "-un", "classifierd").stdout == "classifierd\n"
    off.chrooted("systemd-tmpfiles", "--create", "--prefix=/run/streamfs")
    preset = (ROOT / "systemd/90-streamfs.preset").read_text()
    for name in UNITS:
        has_install = "[Install]" in (ROOT / "systemd" / name).read_text()
        assert (f"disable {name}\n" in preset) == has_install
    assert Path(ROOT / "systemd/streamfs.tmpfiles.conf").read_text().count("/run/streamfs") == 1


def test_boot_allows_fuse_over_io_uring_where_the_kernel_has_it(off: World) -> None:
    words = ("systemd-tmpfiles", "--create", "streamfs-uring.conf")
    switch = "/sys/module/fuse/parameters/enable_uring"
    off.chrooted(*words)
    assert off.chrooted("test", "-e", switch, check=False).returncode != 0
    off.write(switch, "N\n")
    off.chrooted(*words)
    assert off.chrooted("cat", switch).stdout.strip() == "Y"
    shutil.rmtree(off.upper / "sys/module")
    options = (off.upper / "usr/lib/modprobe.d/streamfs-uring.conf").read_text()
    assert "options fuse enable_uring=1" in options.splitlines()


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_needs_no_program_of_another_package(name: str) -> None:
    """kill(1) is of procps, which a small system lacks; the shell has a kill of its own."""
    text = (ROOT / "systemd" / name).read_text()
    assert not re.search(r"^Exec\w+=[-@:+!]*(/usr)?(/bin/)?kill\b", text, re.MULTILINE)
