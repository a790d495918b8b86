"""Mounted filesystems to be measured side by side, on one disk, by the same programs.

Each is a function that mounts one until a stack unwinds.
"""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.loop import mount_loop
from bench.paths import BIN, ROOT
from bench.system import BenchError, as_root, output_of, start, unmount, wait_until

PASSTHROUGH = ROOT / "build" / "deps" / "bin" / "passthrough_hp"


@dataclass(frozen=True)
class Mounted:
    """Where to work in it, and the process whose CPU time is its own (None: the kernel's)."""

    point: Path
    server: int | None = None


Mounter = Callable[[ExitStack, Path, int], Mounted]


def streamfs(stack: ExitStack, work: Path, size: int, meta: Path | None = None) -> Mounted:
    """META is a file beside DATA's unless it is named; room for files of 16 KiB."""
    work.mkdir(exist_ok=True)
    data, meta = work / "streamfs.data", meta or work / "streamfs.meta"
    _make(data, size)
    output_of([BIN / "mkfs.streamfs", "--mean-file-size", "16K", "--meta", meta, data])
    point = _point(work, "streamfs")
    return _serve(stack, point, [BIN / "streamfs", data, point, "-f", "-o", f"meta={meta}"])


def limit_fs(stack: ExitStack, work: Path, _size: int) -> Mounted:
    """Mount the server that does nothing, connected as streamfs is."""
    point = _point(work, "limit_fs")
    return _serve(stack, point, [BIN / "limit_fs", point])


def ext4(stack: ExitStack, work: Path, size: int) -> Mounted:
    """ext4 on a loop device: what a filesystem of the kernel does on the same disk."""
    return Mounted(_on_loop(stack, work, "ext4", size))


def passthrough_hp(stack: ExitStack, work: Path, size: int) -> Mounted:
    """libfuse's example of a fast server, on an ext4 of its own."""
    if not PASSTHROUGH.exists():
        message = "passthrough_hp was not built with libfuse (see build/libfuse.log)"
        raise BenchError(message)
    below = _on_loop(stack, work, "below", size)
    point = _point(work, "passthrough_hp")
    return _serve(stack, point, as_root([PASSTHROUGH, "--foreground", below, point]))


MOUNTERS: dict[str, Mounter] = {
    "streamfs": streamfs,
    "limit_fs": limit_fs,
    "ext4": ext4,
    "passthrough_hp": passthrough_hp,
}


def meta_class(mounted: Mounted) -> str:
    """Return what fsync waits for on a mounted streamfs."""
    return str(_status(mounted)["meta_class"])


def flushes(mounted: Mounted) -> int:
    """Return how often DATA was flushed so far; 0 where streamfs does not count."""
    return 0 if mounted.server is None else int(_status(mounted)["device"]["flushes"])


def _status(mounted: Mounted) -> dict[str, Any]:
    told = output_of([BIN / "streamctl", "status", str(mounted.point), "--json"])
    answer: dict[str, Any] = json.loads(told)
    return answer


def _on_loop(stack: ExitStack, work: Path, name: str, size: int) -> Path:
    image = work / f"{name}.img"
    _make(image, size)
    loop = output_of(as_root(["losetup", "--find", "--show", "--direct-io=on", image])).strip()
    stack.callback(output_of, as_root(["losetup", "--detach", loop]))
    point = _point(work, name)
    mount_loop(stack, ["mkfs.ext4", "-q"], loop, point)
    return point


def _make(path: Path, size: int) -> None:
    """Make it with all of its blocks, so that nobody pays for them later."""
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _point(work: Path, name: str) -> Path:
    point = work / name
    point.mkdir(exist_ok=True)
    return point


def _serve(stack: ExitStack, point: Path, command: Sequence[str | Path]) -> Mounted:
    log = point.with_suffix(".log")
    server = start(stack, command, log)
    stack.callback(unmount, as_root(["umount"]), point)
    wait_until(lambda: os.path.ismount(point), point.name, server, log)
    return Mounted(point, server.pid)
