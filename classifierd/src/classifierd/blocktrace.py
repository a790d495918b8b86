"""Records what a stock kernel writes to a block device: tracefs events, no blktrace, no BPF.

The events are block_rq_issue (requests as the device gets them, merged), in a trace instance of our
own, so that nobody else's tracing is touched. Only writes and discards are kept.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from classifierd.requests import Requests
from classifierd.traces import TraceError

SECTOR_BYTES = 512
_ROOTS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_BUFFER_KB = 8192  # of each processor
_LINE = re.compile(
    r"^\s*(?P<comm>.+)-\d+\s+\[\d+\]\s+\S+\s+(?P<seconds>\d+)\.(?P<micros>\d+): block_rq_issue: "
    r"\d+,\d+ (?P<kind>[A-Z]+) \d+ \([^)]*\) (?P<sector>\d+) \+ (?P<sectors>\d+) "
)
HEADER = "ts_us,op,offset_bytes,length_bytes,context"
# An op is one letter; with the second one an operation of another name is seen to be one.
_ROW = np.dtype([(name, "U2" if name == "op" else "<i8") for name in HEADER.split(",")])
_LOST = re.compile(r"^CPU:\d+ \[LOST (\d+) EVENTS\]")


class RecordError(OSError):
    """What cannot be recorded, and why."""


@dataclass(frozen=True)
class Write:
    """One request: a write, or a discard."""

    ts_us: int
    trim: bool
    offset_bytes: int
    length_bytes: int
    journal: bool  # of a file system's own log, or metadata
    comm: str


def parse(line: str) -> Write | None:
    """One line of trace_pipe; None for what is no write of data."""
    found = _LINE.match(line)
    if found is None or int(found["sectors"]) == 0:
        return None
    kind = found["kind"]
    if "D" not in kind and "W" not in kind:
        return None
    comm = found["comm"].strip()
    # What a file system marks as metadata: XFS writes its log from kworkers, its other metadata
    # from xfsaild, both with REQ_META. ext4's log is jbd2's, marked or not.
    journal = comm.startswith("jbd2/") or "M" in kind
    return Write(
        int(found["seconds"]) * 1_000_000 + int(found["micros"]),
        "D" in kind,
        int(found["sector"]) * SECTOR_BYTES,
        int(found["sectors"]) * SECTOR_BYTES,
        journal,
        comm,
    )


def _root() -> Path:
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
def _tracing(device: Path) -> Iterator[int]:
    """A pipe of events of this disk."""
    major, minor = device_number(device)
    instance = _root() / f"instances/streamfs-advise-{os.getpid()}"
    try:
        instance.mkdir()
    except OSError as error:
        msg = f"{instance}: {error.strerror}"
        raise RecordError(error.errno, msg) from error
    pipe = -1
    try:
        (instance / "buffer_size_kb").write_text(str(_BUFFER_KB))
        event = instance / "events/block/block_rq_issue"
        (event / "filter").write_text(f"dev == {(major << 20) | minor}")
        pipe = os.open(instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        (event / "enable").write_text("1")
        yield pipe
    finally:
        if pipe >= 0:
            os.close(pipe)
        (instance / "events/block/block_rq_issue/enable").write_text("0")
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
    device: Path, seconds: float, stopped: Callable[[], bool] = lambda: False
) -> tuple[list[Write], int]:
    """What is written to a device or partition for so long, and how many events were lost.

    Offsets are from its beginning. Raises RecordError.
    """
    disk, start = whole_disk(device)
    size = capacity_bytes(device)
    with _tracing(disk) as pipe:
        return collect(_lines(pipe, time.monotonic() + seconds, stopped), start, size)


def collect(lines: Iterable[str], start: int, size: int) -> tuple[list[Write], int]:
    """The writes within [start, start + size) of the disk, and events lost."""
    out, lost = [], 0
    for line in lines:
        gone = _LOST.match(line)
        if gone is not None:
            lost += int(gone[1])
        write = parse(line)
        if write is None or not start <= write.offset_bytes < start + size:
            continue
        length = min(write.length_bytes, start + size - write.offset_bytes)
        out.append(
            Write(
                write.ts_us,
                write.trim,
                write.offset_bytes - start,
                length,
                write.journal,
                write.comm,
            )
        )
    return out, lost


def mounted_at(device: Path) -> Path | None:
    """Where the file system on it is mounted; None: nowhere."""
    wanted = ":".join(str(each) for each in device_number(device))
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split(" ")
        if fields[2] == wanted:
            return Path(fields[4].encode().decode("unicode_escape"))
    return None


def used_bytes(mount: Path) -> int:
    """What a file system holds."""
    found = os.statvfs(mount)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def requests(writes: list[Write]) -> Requests:
    """As columns."""
    rows = [(each.trim, each.offset_bytes, each.length_bytes, each.journal) for each in writes]
    trim, offset, length, log = np.array(rows, np.int64).reshape(-1, 4).T
    return Requests(trim != 0, offset, length, log != 0)


def read_trace(path: Path) -> tuple[Requests, float] | None:
    """What write_trace() wrote, and the seconds it covers; None if that is another's trace.

    Raises OSError and TraceError.
    """
    with path.open("rb") as file:
        if file.readline(100).strip() != HEADER.encode():
            return None
    try:
        some = path.stat().st_size > len(HEADER) + 1
        rows = np.zeros(0, _ROW)
        if some:
            rows = np.loadtxt(path, _ROW, delimiter=",", skiprows=1, ndmin=1)
        if not np.isin(rows["op"], ["W", "T"]).all():
            msg = "rows that are no writes"
            raise ValueError(msg)
    except (ValueError, OverflowError) as error:
        msg = f"{path}: {error}"
        raise TraceError(msg) from error
    seconds = float(np.ptp(rows["ts_us"])) / 1e6 if len(rows) else 0.0
    rows = rows[(rows["offset_bytes"] >= 0) & (rows["length_bytes"] > 0)]
    offset, length = (rows[name].copy() for name in ("offset_bytes", "length_bytes"))
    return Requests(rows["op"] == "T", offset, length, rows["context"] == 1), seconds


def write_trace(file: TextIO, writes: Iterable[Write]) -> None:
    """As a trace that ssd-sim and classifierd read; context 1: a file system's log or metadata."""
    file.write(HEADER + "\n")
    for each in writes:
        kind = "T" if each.trim else "W"
        file.write(
            f"{each.ts_us},{kind},{each.offset_bytes},{each.length_bytes},{int(each.journal)}\n"
        )
