"""Mounted filesystems to be measured side by side, on one disk, by the same programs.

Each is a function that mounts one until a stack unwinds.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.loop import attach_loop, mount_loop
from bench.paths import BIN, ROOT
from bench.streamctl import status
from bench.system import BenchError, as_root, output_of, start, unmount, wait_until

PASSTHROUGH = ROOT / "build" / "deps" / "bin" / "passthrough_hp"


OVER_IO_URING = " over io_uring"
# META there is volatile, unless mkfs is told otherwise: then it emulates persistent memory.
MEMORY = Path("/dev/shm")
DECLARED = {"persistent": "--meta-class=persistent", "trusted": "--trust-memory"}
FLUSHES = 15  # field of Documentation/block/stat.rst
ENABLED = Path("/sys/module/fuse/parameters/enable_uring")  # by root: echo Y


@dataclass(frozen=True)
class Mounted:
    """Where to work in it, and the process whose CPU time is its own (None: the kernel's)."""

    point: Path
    server: int | None = None


Mounter = Callable[[ExitStack, Path, int], Mounted]


def streamfs(
    stack: ExitStack,
    work: Path,
    size: int,
    meta: Path | None = None,
    name: str = "streamfs",
    *,
    checksums: bool = True,
    make: Sequence[str] = (),
) -> Mounted:
    """META is a file beside DATA's unless it is named; room for files of 16 KiB.

    ``make`` are further options of mkfs.streamfs.
    """
    work.mkdir(exist_ok=True)
    data, meta = work / f"{name}.data", meta or work / f"{name}.meta"
    _make(data, size)
    shape = ["--mean-file-size", "16K", *([] if checksums else ["--no-checksums"])]
    output_of([BIN / "mkfs.streamfs", *shape, *make, "--meta", meta, data])
    point = _point(work, name)
    transport = "transport=io_uring" if OVER_IO_URING in name else "transport=dev"
    # Early copies cost NAND bytes, and when they happen depends on the machine's pace.
    options = f"meta={meta},{transport},idle_work=off"
    return _serve(stack, point, [BIN / "streamfs", data, point, "-f", "-o", options])


def limit_fs(stack: ExitStack, work: Path, _size: int, name: str = "limit_fs") -> Mounted:
    """Mount the server that does nothing, connected as streamfs is."""
    point = _point(work, name)
    transport = ["--io-uring"] if OVER_IO_URING in name else []
    return _serve(stack, point, [BIN / "limit_fs", point, *transport])


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


def over_io_uring(mounter: Callable[..., Mounted]) -> dict[str, Mounter]:
    """Name the same server, asked over io_uring; nothing where the kernel does not offer that."""
    if not ENABLED.exists() or ENABLED.read_text().strip() != "Y":
        return {}
    name = mounter.__name__ + OVER_IO_URING
    return {name: partial(mounter, name=name)}


MOUNTERS: dict[str, Mounter] = {
    "streamfs": streamfs,
    "limit_fs": limit_fs,
    "ext4": ext4,
    "passthrough_hp": passthrough_hp,
}


def folder(stack: ExitStack) -> Path:
    """Make a folder that goes when the stack unwinds."""
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamfs-bench-")))


def mount_all(stack: ExitStack, size: int) -> dict[str, Mounted]:
    """Mount one of each by name, on images of ``size`` bytes; what was not built is left out."""
    work = folder(stack)
    mounters = MOUNTERS | over_io_uring(streamfs) | over_io_uring(limit_fs)
    if not PASSTHROUGH.exists():
        del mounters["passthrough_hp"]
    return {name: mount(stack, work, size) for name, mount in mounters.items()}


def compared(names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield streamfs as it is asked, and whom to compare it with: over io_uring, who is as well."""
    plain = [name for name in names if OVER_IO_URING not in name]
    yield "streamfs", [name for name in plain if name != "streamfs"]
    ours = "streamfs" + OVER_IO_URING
    if ours in names:
        yield ours, ["streamfs", "limit_fs" + OVER_IO_URING]


def meta_class(mounted: Mounted) -> str:
    """Return what fsync waits for on a mounted streamfs."""
    return str(status(mounted.point)["meta_class"])


def flushes(mounted: Mounted) -> int:
    """Return how often the device beneath was flushed so far, as its user or the kernel counts."""
    if mounted.server is not None:
        return int(status(mounted.point)["device"]["flushes"])
    device = mounted.point.stat().st_dev
    counts = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()
    return int(counts[FLUSHES])


def fences(mounted: Mounted) -> int:
    """Return how often META of a mounted streamfs was fenced so far, checkpoints included."""
    return int(status(mounted.point)["meta"]["fences"])


def settle(mounted: Mounted) -> None:
    """Make all that was written durable; no sync(2) reaches a FUSE server as a barrier."""
    output_of(["sync", "-f", mounted.point])
    if mounted.server is not None:
        output_of([BIN / "streamctl", "sync", mounted.point])


def _on_loop(stack: ExitStack, work: Path, name: str, size: int) -> Path:
    image = work / f"{name}.img"
    _make(image, size)
    loop = attach_loop(stack, image)
    point = _point(work, name)
    mount_loop(stack, ["mkfs.ext4", "-q", "-E", "nodiscard"], loop, point)
    return point


def _make(path: Path, size: int) -> None:
    """Make it with all of its blocks written: what is only allocated costs a commit of the disk's
    filesystem at its first write, which no SSD does.
    """
    zeroes = bytes(1 << 20)
    with path.open("wb") as file:
        for _ in range(size // len(zeroes)):
            file.write(zeroes)
        os.fsync(file.fileno())


def streamfs_on_ssd(stack: ExitStack, ssd: Path, work: Path, *options: str) -> Path:
    """Make one on an emulated SSD's image, META beside it, and return where it is mounted."""
    data, meta, point = f"emu:{ssd}", work / "META", _point(work, "mount")
    output_of([BIN / "mkfs.streamfs", "-f", "--meta", meta, data])
    words = ",".join([f"meta={meta}", *options])
    return _serve(stack, point, [BIN / "streamfs", data, point, "-f", "-o", words]).point


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
