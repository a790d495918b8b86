"""ssd-sim and what it serves, for tests: always unmounted, detached and ended."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("STREAMFS_BIN", ROOT / "build/release/bin"))
SSD_SIM = BIN / "ssd-sim"
MIB = 1 << 20
USAGE, FOREIGN, NO_DEVICE, NOT_EMPTY, BUSY = 64, 65, 66, 73, 75


class Result(NamedTuple):
    """The exit code and output of a program."""

    status: int
    out: str
    err: str


def run(*command: str | Path, timeout: float = 120) -> Result:
    """Run a command to its end."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def ssd_sim(*arguments: str | Path) -> Result:
    """Run ssd-sim."""
    return run(SSD_SIM, *arguments)


def must(*command: str | Path) -> str:
    """Run a command that has to succeed; its output."""
    done = run(*command)
    assert done.status == 0, f"{command}: {done.out}{done.err}"
    return done.out


def info(image: Path) -> dict[str, Any]:
    """Statistics of an image."""
    shown: dict[str, Any] = json.loads(must(SSD_SIM, "info", image, "--json"))
    return shown


def require_serving() -> None:
    """Skip where a served SSD cannot be mounted or looped."""
    if not Path("/dev/fuse").exists():
        pytest.skip("no /dev/fuse")
    if os.geteuid() != 0:
        pytest.skip("loop devices need root")
    if not Path("/dev/loop-control").exists():
        pytest.skip("no loop devices")


@contextlib.contextmanager
def served(image: Path, *options: str) -> Iterator[Path]:
    """Serve an image; the file it appears as."""
    mountpoint = image.parent / f"{image.name}.served"
    mountpoint.mkdir()
    process = subprocess.Popen([SSD_SIM, "serve", "-f", *options, image, mountpoint])
    try:
        deadline = time.monotonic() + 10
        while not (mountpoint / "ssd.img").exists():
            assert process.poll() is None, "ssd-sim serve ended"
            assert time.monotonic() < deadline, "ssd-sim serve does not come up"
            time.sleep(0.02)
        yield mountpoint / "ssd.img"
    finally:
        run("umount", mountpoint)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        run("umount", "-l", mountpoint)
        mountpoint.rmdir()


def holder_of(image: Path) -> int:
    """Process that serves an image: the one with it open."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(fd.readlink() == image for fd in (process / "fd").iterdir()):
                return int(process.name)
    pytest.fail(f"nobody holds {image}")


@contextlib.contextmanager
def looped(file: Path, *options: str) -> Iterator[Path]:
    """Put a loop device with direct I/O on a file."""
    words: list[str | Path] = ["--find", "--show", "--direct-io=on", *options, file]
    device = Path(must("losetup", *words).strip())
    try:
        yield device
    finally:
        run("losetup", "--detach", device)


@contextlib.contextmanager
def mounted(device: Path, at: Path) -> Iterator[Path]:
    """Mount a filesystem that discards."""
    at.mkdir()
    must("mount", "-o", "discard", device, at)
    try:
        yield at
    finally:
        done = run("umount", at)
        if done.status != 0:
            run("umount", "-l", at)
        at.rmdir()
        assert done.status == 0, done.err


def check(filesystem: str, device: Path) -> None:
    """Assert that a filesystem is whole."""
    if filesystem == "ext4":
        must("e2fsck", "-f", "-n", device)
    else:
        must("xfs_repair", "-n", device)
