"""Every mode of I/O, alone and together, is on streamfs what it is on ext4."""

import hashlib
import json
import mmap
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from bench.mounts import MOUNTERS
from tests.integration.pairs import ROOT, Mount, Pair, run
from tests.integration.transport import TRANSPORTS

SCRIPT_SECONDS = 120
MODES = {"cached": [], "direct_io": ["direct_io"]}  # mount options

Observed = dict[str, dict[str, Any]]


def observe(folder: Path) -> Observed:
    """Run the script on a mounted filesystem."""
    command = [sys.executable, "-m", "tests.integration.io_modes.script"]
    done = run(*command, folder, cwd=ROOT, timeout=SCRIPT_SECONDS)
    seen: Observed = json.loads(done.stdout)
    return seen


@pytest.fixture(scope="module")
def on_ext4(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """The script's results on ext4."""
    with ExitStack() as stack:
        return observe(MOUNTERS["ext4"](stack, tmp_path_factory.mktemp("ext4"), 512 << 20).point)


def content(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Size, mtime and a hash of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): (
            path.stat().st_size,
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in files
    }


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("io_uring_allowed")
def test_the_script_sees_what_it_sees_on_ext4(
    pair: Pair, on_ext4: Observed, mode: str, transport: str
) -> None:
    options = [*MODES[mode], *TRANSPORTS[transport]]
    mount = pair.mount(*options)
    seen = observe(mount.point)
    # By design: what is no multiple of a sector is done, where a disk's driver refuses it.
    refused = {
        name: int(name.split()[1])
        for name, found in on_ext4["unaligned_direct_io"].items()
        if found == "errno 22"
    }
    wanted = {**on_ext4, "unaligned_direct_io": {**on_ext4["unaligned_direct_io"], **refused}}
    assert seen == wanted
    before = content(mount.point)
    mount.unmount()
    pair.assert_sound()
    assert content(pair.mount(*options).point) == before


def store_and_flush(fd: int, piece: memoryview) -> None:
    """Write through a mapping, and msync."""
    os.ftruncate(fd, len(piece))
    with mmap.mmap(fd, len(piece)) as mapping:
        mapping[:] = piece
        mapping.flush()


def write_and_sync(fd: int, piece: memoryview) -> None:
    """Write, and fdatasync."""
    os.writev(fd, [piece])
    os.fdatasync(fd)


# Writes that promise that the data is durable when they return: flags of open(2), and the call.
DURABLE: dict[str, tuple[int, Callable[[int, memoryview], object]]] = {
    "O_SYNC": (os.O_SYNC, lambda fd, piece: os.writev(fd, [piece])),
    "O_DSYNC": (os.O_DSYNC, lambda fd, piece: os.writev(fd, [piece])),
    "O_DIRECT and O_DSYNC": (os.O_DIRECT | os.O_DSYNC, lambda fd, piece: os.writev(fd, [piece])),
    "RWF_DSYNC": (0, lambda fd, piece: os.pwritev(fd, [piece], 0, os.RWF_DSYNC)),
    "fdatasync": (0, write_and_sync),
    "O_DIRECT and fdatasync": (os.O_DIRECT, write_and_sync),
    "msync": (0, store_and_flush),
}


@pytest.mark.parametrize("mode", MODES)
def test_what_was_synced_outlives_the_daemon(pair: Pair, mode: str) -> None:
    """The daemon is killed right after the sync, with epochs that never close by themselves."""
    mount = pair.mount("epoch_idle_ms=600000", "epoch_age_ms=600000", *MODES[mode])
    piece = memoryview(mmap.mmap(-1, 20480))
    piece[:] = os.urandom(len(piece))
    opened = []
    for name, (flags, write) in DURABLE.items():
        opened.append(os.open(mount / name, os.O_RDWR | os.O_CREAT | flags))
        write(opened[-1], piece)
    kill_with_open_files(mount, opened)
    mount = pair.mount()
    found = {name: (mount / name).read_bytes() == piece for name in DURABLE}
    assert found == dict.fromkeys(DURABLE, True)


def kill_with_open_files(mount: Mount, opened: list[int]) -> None:
    """Kill the daemon before anything is closed, which would push what is dirty."""
    try:
        mount.kill()
    finally:
        for fd in opened:
            os.close(fd)
