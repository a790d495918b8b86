"""A mount by root has the kernel's defaults, as ext4 has: setuid programs and device nodes work."""

import os
import shutil
from pathlib import Path

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run
from tests.integration.test_tools import tool

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="setuid and mknod(2) need root")

OTHER = 65534


def user_of_a_setuid_program(mount: Mount) -> str:
    """Run root's setuid copy of id(1) as another user; returns the effective user it prints."""
    program = mount / "id"
    shutil.copyfile(shutil.which("id") or "/usr/bin/id", program)
    program.chmod(0o4755)
    words = ("setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--clear-groups")
    return run(*words, program, "-u").stdout.strip()


def node_reads_zeroes(mount: Mount) -> bool:
    """Whether a node of /dev/zero can be opened."""
    node = mount / "zero"
    os.mknod(node, 0o20666, os.makedev(1, 5))
    try:
        with node.open("rb") as file:
            return file.read(4) == bytes(4)
    except PermissionError:
        return False


def test_setuid_programs_and_device_nodes_work_by_default(pair: Pair) -> None:
    mount = pair.mount()
    assert user_of_a_setuid_program(mount) == "0"
    assert node_reads_zeroes(mount)


def test_nosuid_and_nodev_forbid_them(pair: Pair) -> None:
    mount = pair.mount("nosuid", "nodev")
    assert user_of_a_setuid_program(mount) == str(OTHER)
    assert not node_reads_zeroes(mount)


def test_a_remount_sets_exactly_what_it_names(pair: Pair) -> None:
    mount = pair.mount()
    program = tool("mount.streamfs", "none", mount.point, "-o", "remount,nosuid")
    assert program.returncode == 0, program.stderr
    assert user_of_a_setuid_program(mount) == str(OTHER)
    assert node_reads_zeroes(mount)
    assert tool("mount.streamfs", "none", mount.point, "-o", "remount,rw").returncode == 0
    (mount / "id").unlink()
    assert user_of_a_setuid_program(mount) == "0"


# In a mount namespace of its own, where mount(8) finds the helpers of HELPERS beside its own.
REMOUNT = """
set -e
helpers=$1 point=$2
shift 2
mount -t overlay -o "lowerdir=$helpers:/usr/sbin" none /usr/sbin
mount "$@" -o remount,noatime "$point"
findmnt -nro VFS-OPTIONS "$point"
"""


def helpers_of_mount(folder: Path) -> Path:
    """Give a folder of mount(8)'s helpers that say when they are called."""
    folder.mkdir()
    for name in ("mount.streamfs", "mount.fuse.streamfs"):
        helper = folder / name
        helper.write_text(
            f'#!/bin/sh\necho helper "$@" >>{folder}/called\nexec {BIN}/{name} "$@"\n'
        )
        helper.chmod(0o755)
    return folder


@pytest.mark.parametrize("internal", [False, True], ids=["by the helper", "by mount(8) itself"])
def test_a_remount_by_mount_8_keeps_nosuid_and_nodev(
    pair: Pair, tmp_path: Path, *, internal: bool
) -> None:
    mount = pair.mount("nosuid", "nodev")
    helpers = helpers_of_mount(tmp_path / "helpers")
    words = ["-i"] if internal else []
    done = run("unshare", "-m", "sh", "-c", REMOUNT, "sh", helpers, mount.point, *words)
    options = done.stdout.strip().split(",")
    assert {"nosuid", "nodev", "noatime"} <= set(options)
    assert (helpers / "called").exists() != internal


def test_findmnt_and_df_name_type_and_source(pair: Pair) -> None:
    mount = pair.mount()
    found = run("findmnt", "-nro", "FSTYPE,SOURCE", mount.point).stdout.split()
    assert found == ["fuse.streamfs", str(pair.data)]
    rows = run("df", "--output=fstype,source,target", mount.point).stdout.splitlines()
    assert rows[1].split() == ["fuse.streamfs", str(pair.data), str(Path(mount.point))]
