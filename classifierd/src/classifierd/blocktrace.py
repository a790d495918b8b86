"""Records what a stock kernel writes to a block device: tracefs events, no blktrace, no BPF.

The events are block_rq_issue (requests as the device gets them, merged) and ext4's allocations,
which say whose pages these are (owners.py), in a trace instance of our own, so that nobody else's
tracing is touched. Only writes and discards are kept.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from classifierd import owners
from classifierd.owners import Names, Owners
from classifierd.recording import Recording
from classifierd.requests import Requests

SECTOR_BYTES = 512
_ROOTS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_BUFFER_KB = 8192  # of each processor
_LINE = re.compile(
    r"^\s*(?P<comm>.+)-\d+\s+\[\d+\]\s+\S+\s+(?P<seconds>\d+)\.(?P<micros>\d+): block_rq_issue: "
    r"\d+,\d+ (?P<kind>[A-Z]+) \d+ \([^)]*\) (?P<sector>\d+) \+ (?P<sectors>\d+) "
)
_LOST = re.compile(r"^CPU:\d+ \[LOST (\d+) EVENTS\]")


class RecordError(OSError):
    """The device cannot be recorded; the message says why."""


@dataclass(frozen=True)
class Write:
    """A request: a write, or a discard."""

    ts_us: int
    trim: bool
    offset_bytes: int
    length_bytes: int
    journal: bool  # of a file system's own log, or metadata
    context: int = owners.NOBODY  # the owner's


def parse(line: str) -> Write | None:
    """A line of trace_pipe; None for what is no write of data."""
    found = _LINE.match(line)
    if found is None or int(found["sectors"]) == 0:
        return None
    kind = found["kind"]
    if "D" not in kind and "W" not in kind:
        return None
    comm = found["comm"].strip()
    # A file system marks its metadata: XFS writes its log from kworkers, its other metadata from
    # xfsaild, both with REQ_META. ext4's log is jbd2's, marked or not.
    journal = comm.startswith("jbd2/") or "M" in kind
    return Write(
        int(found["seconds"]) * 1_000_000 + int(found["micros"]),
        "D" in kind,
        int(found["sector"]) * SECTOR_BYTES,
        int(found["sectors"]) * SECTOR_BYTES,
        journal,
    )


def tracing_folder() -> Path:
    """Where the kernel's tracefs is. Raises RecordError if it is not mounted or not readable."""
    for root in _ROOTS:
        if (root / "events/block/block_rq_issue").is_dir():
            return root
    msg = "tracefs is not there: run as root, and `mount -t tracefs tracefs /sys/kernel/tracing`"
    raise RecordError(msg)


def device_number(device: Path) -> tuple[int, int]:
    """Major and minor. Raises RecordError for what is no block device."""
    try:
        found = device.stat()
    except OSError as error:
        msg = f"{device}: {error.strerror}"
        raise RecordError(error.errno, msg) from error
    if not device.is_block_device():
        msg = f"{device} is no block device"
        raise RecordError(msg)
    return os.major(found.st_rdev), os.minor(found.st_rdev)


def whole_disk(device: Path) -> tuple[Path, int]:
    """The disk that requests go to, and where the partition begins on it, bytes."""
    major, minor = device_number(device)
    here = Path(f"/sys/dev/block/{major}:{minor}").resolve()
    if not (here / "partition").exists():
        return device, 0
    return Path("/dev") / here.parent.name, int((here / "start").read_text()) * SECTOR_BYTES


def capacity_bytes(device: Path) -> int:
    """How large it is."""
    major, minor = device_number(device)
    return int(Path(f"/sys/dev/block/{major}:{minor}/size").read_text()) * SECTOR_BYTES


@contextmanager
def _tracing(disk: Path, ext4: Path | None) -> Iterator[int]:
    """A pipe of events of this disk, and of allocations by the ext4 on that device."""
    filters = [("block/block_rq_issue", disk)]
    if ext4 is not None and (tracing_folder() / "events" / owners.EVENT).is_dir():
        filters.insert(0, (owners.EVENT, ext4))
    instance = tracing_folder() / f"instances/streamfs-advise-{os.getpid()}"
    try:
        instance.mkdir()
    except OSError as error:
        msg = f"{instance}: {error.strerror}"
        raise RecordError(error.errno, msg) from error
    pipe = -1
    try:
        (instance / "buffer_size_kb").write_text(str(_BUFFER_KB))
        pipe = os.open(instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        for event, device in filters:
            major, minor = device_number(device)
            (instance / "events" / event / "filter").write_text(f"dev == {(major << 20) | minor}")
            (instance / "events" / event / "enable").write_text("1")
        yield pipe
    finally:
        if pipe >= 0:
            os.close(pipe)
        for event, _ in filters:
            with suppress(OSError):
                (instance / "events" / event / "enable").write_text("0")
        instance.rmdir()


def _lines(pipe: int, until: float, stopped: Callable[[], bool]) -> Iterator[str]:
    rest = b""
    while not stopped() and (left := until - time.monotonic()) > 0:
        select.select([pipe], [], [], min(left, 0.2))
        try:
            part = os.read(pipe, 1 << 16)
        except BlockingIOError:
            continue
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
        if not part:
            time.sleep(0.05)


def record(
    device: Path,
    seconds: float,
    stopped: Callable[[], bool] = lambda: False,
    found: Owners | None = None,
) -> Recording:
    """Record the writes to a device or partition for so long, with their owners, from `found` on.

    Offsets are from its beginning. Raises RecordError.
    """
    disk, start = whole_disk(device)
    size, mount = capacity_bytes(device), mounted_at(device)
    with ExitStack() as stack:
        if mount is None or found is None:
            pipe = stack.enter_context(_tracing(disk, None))
            return collect(_lines(pipe, time.monotonic() + seconds, stopped), start, size)
        names = stack.enter_context(closing(Names(mount)))
        pipe = stack.enter_context(_tracing(disk, device))
        block_bytes = os.statvfs(mount).f_frsize
        lines = _lines(pipe, time.monotonic() + seconds, stopped)
        others = (line for line in lines if not found.take(line, names, block_bytes))
        return collect(others, start, size, found)


def collect(lines: Iterable[str], start: int, size: int, found: Owners | None = None) -> Recording:
    """The writes within [start, start + size) of the disk."""
    out, lost = list[Write](), 0
    for line in lines:
        gone = _LOST.match(line)
        if gone is not None:
            lost += int(gone[1])
        write = parse(line)
        if write is None or not start <= write.offset_bytes < start + size:
            continue
        length = min(write.length_bytes, start + size - write.offset_bytes)
        write = replace(write, offset_bytes=write.offset_bytes - start, length_bytes=length)
        if found is None or write.trim or write.journal:
            out.append(write)
            continue
        for offset, part, context in found.parts(write.offset_bytes, length):
            out.append(replace(write, offset_bytes=offset, length_bytes=part, context=context))
    names = {} if found is None else found.names
    return Recording(_requests(out), names, lost=lost)


def _requests(writes: list[Write]) -> Requests:
    """As columns."""
    rows = [
        (each.trim, each.offset_bytes, each.length_bytes, each.journal, each.context, each.ts_us)
        for each in writes
    ]
    trim, offset, length, log, owner, time_us = np.array(rows, np.int64).reshape(-1, 6).T
    return Requests(trim != 0, offset, length, log != 0, owner, time_us)


def _octal(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)])


def mounted_at(device: Path) -> Path | None:
    """Where the file system on it is mounted; None: nowhere."""
    wanted = ":".join(str(each) for each in device_number(device))
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split(" ")
        if fields[2] == wanted:
            escaped = os.fsencode(fields[4])
            return Path(os.fsdecode(re.sub(rb"\\([0-7]{3})", _octal, escaped)))
    return None


def used_bytes(mount: Path) -> int:
    """The bytes in use on a file system."""
    found = os.statvfs(mount)
    return (found.f_blocks - found.f_bfree) * found.f_frsize
