"""The writes to a device, kept as a file: a trace that ssd-sim reads as well.

CSV (trace/trace.h). Context 1 is a file system's log or metadata, 0 data of nobody knows
whom. Comments behind the header say what the others are and what the device held before:
  #context,NUMBER,EXTENSION,DIRECTORY
  #device,CAPACITY_BYTES,USED_BYTES
  #held,FIRST_PAGE,PAGES
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np

from classifierd import owners, traces
from classifierd.contexts import VSTREAMS
from classifierd.records import BLOCK_BYTES, Ints
from classifierd.requests import Requests
from classifierd.traces import TraceError

HEADER = "ts_us,op,offset_bytes,length_bytes,context"


@dataclass(frozen=True)
class Disk:
    """The device's content before: i64[runs, 2], first page and pages; None if unknown."""

    capacity_bytes: int = 0  # 0: not known
    used_bytes: int = 0
    held: Ints | None = None


@dataclass(frozen=True)
class Recording:
    """Requests, (extension, directory) to their contexts, the device, seconds, events lost."""

    requests: Requests
    names: dict[tuple[str, str], int] = field(default_factory=dict)
    disk: Disk = field(default_factory=Disk)
    seconds: float = 0.0
    lost: int = 0


def write(file: TextIO, recording: Recording) -> None:
    """Keep it; how many events were lost is not kept."""
    requests, disk = recording.requests, recording.disk
    file.write(HEADER + "\n")
    for (ext, directory), number in recording.names.items():
        file.write(f"#context,{number},{ext},{directory}\n")
    if disk.capacity_bytes:
        file.write(f"#device,{disk.capacity_bytes},{disk.used_bytes}\n")
    if disk.held is not None:
        file.writelines(f"#held,{first},{pages}\n" for first, pages in disk.held.tolist())
    op = np.where(requests.trim, ord("T"), ord("W"))
    context = np.where(requests.log, owners.LOG, requests.owner)
    columns = (requests.time_us, op, requests.offset_bytes, requests.length_bytes, context)
    np.savetxt(file, np.column_stack(columns), fmt="%d,%c,%d,%d,%d")


def read(path: Path) -> Recording | None:
    """Read a file of write(); None if it is another's trace. Raises OSError and TraceError."""
    with path.open("rb") as file:
        if file.readline(100).strip() != HEADER.encode():
            return None
    try:
        names, disk = _said(path)
        rows = traces.rows(path)
        if (rows["op"] == traces.READ).any():
            msg = "rows that are no writes"
            raise ValueError(msg)
    except TraceError:
        raise
    except (ValueError, OverflowError) as error:
        msg = f"{path}: {error}"
        raise TraceError(msg) from error
    seconds = float(np.ptp(rows["ts_us"])) / 1e6 if len(rows) else 0.0
    time_us, offset, length, context = (
        rows[name].astype(np.int64) for name in ("ts_us", "offset", "length", "context")
    )
    log = context == owners.LOG
    owner = np.where(np.isin(context, list(names.values())), context, owners.NOBODY)
    requests = Requests(rows["op"] == traces.TRIM, offset, length, log, owner, time_us)
    return Recording(requests, names, disk, seconds)


def _said(path: Path) -> tuple[dict[tuple[str, str], int], Disk]:
    """The vStreams by (extension, directory), and the disk, from the comments after the header."""
    names, held = dict[tuple[str, str], int](), list[tuple[int, int]]()
    capacity, used = 0, 0
    with path.open() as file:
        file.readline()
        for line in file:
            if not line.startswith("#"):
                break
            kind, *words = line.rstrip("\n").split(",")
            if kind == "#context":
                number, ext, directory = words
                names[ext, directory] = _within(number, owners.LOG + 1, VSTREAMS - 1)
            elif kind == "#device":
                size, full = words
                capacity = _within(size, BLOCK_BYTES, 1 << 62)
                used = _within(full, 0, capacity)
            elif kind == "#held":
                first, pages = words
                at = _within(first, 0, capacity // BLOCK_BYTES)
                held.append((at, _within(pages, 1, capacity // BLOCK_BYTES - at)))
    return names, Disk(capacity, used, np.array(held) if held else None)


def _within(text: str, least: int, most: int) -> int:
    number = int(text)
    if not least <= number <= most:
        msg = f"{number} is not within {least} and {most}"
        raise ValueError(msg)
    return number
