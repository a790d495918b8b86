"""Traces of what a device was sent (docs/FORMAT.md, "Traces"), as records.

The reader is that of ssd-sim (trace/trace.h), so both accept the same files.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.contexts import VStream, parse_streams
from classifierd.errors import sentence
from classifierd.records import BLOCK_BYTES, Ints, Records, make, pages_one_by_one

READ, WRITE, TRIM = b"RWT"  # a row's `op`

_RUN_PAGES_MAX = 1 << 16  # of a write record (record_check.h); a longer write becomes several
_PAGES_MAX = (1 << 32) - 1  # of a trim record


class TraceError(ValueError):
    """A trace file that cannot be read as one."""


def rows(path: Path) -> npt.NDArray[np.void]:
    """Read a trace's rows: a structured array with the fields of trace::TraceRecord.

    Raises TraceError with the line and its fault, or OSError.
    """
    try:
        return _core.read_trace(os.fsencode(path))
    except ValueError as error:
        raise TraceError(str(error)) from error


def _join_requests(out: Records, request: Ints) -> None:
    """Parts of one request know its length and their place in it."""
    if len(out) == 0:
        return
    order = np.argsort(request, kind="stable")
    pages = out["pages"][order].astype(np.int64)
    starts = np.flatnonzero(np.diff(request[order], prepend=request[order][:1] - 1))
    lengths = np.diff(np.append(starts, len(order)))
    before = np.cumsum(pages) - pages
    out["request_offset"][order] = before - np.repeat(before[starts], lengths)
    out["request_pages"][order] = np.repeat(np.add.reduceat(pages, starts), lengths)


def read_vstreams(path: Path) -> list[VStream]:
    """Read what ``streamctl streams --json`` said of a trace's vStreams.

    Raises TraceError or OSError.
    """
    try:
        said = json.loads(path.read_text())
    except ValueError as error:
        msg = f"{path}: {sentence(error)}"
        raise TraceError(msg) from error
    known = parse_streams(said.get("streams") if isinstance(said, dict) else None)
    if not known:
        msg = f"{path}: no vStreams in it"
        raise TraceError(msg)
    return known


def read(path: Path) -> tuple[Records, list[VStream]]:
    """Read a trace: its writes and trims as records, and its vStreams.

    Writes widen to whole pages and trims shrink. Raises TraceError or OSError.
    """
    found = rows(path)
    known = [VStream(int(number)) for number in np.unique(found["vstream"])]
    found = found[found["op"] != READ]
    trim = found["op"] == TRIM
    first, pages = _pages(found, trim)
    runs = np.where(trim, np.minimum(pages, 1), -(-pages // _RUN_PAGES_MAX))
    row, place = pages_one_by_one(runs)
    begun = np.where(trim[row], 0, place * _RUN_PAGES_MAX)
    left = pages[row] - begun
    length = np.where(trim[row], left, np.minimum(left, _RUN_PAGES_MAX))
    out = make(first[row] + begun, length, trim=trim[row], vstream=found["vstream"][row])
    out["file_place"] = found["file_place"][row]
    # A row without a request's number is a request of its own.
    request = found["request"].astype(np.int64)
    request = np.where(request != 0, request, -1 - np.arange(len(found)))[row]
    writes = ~trim[row]
    joined = out[writes]
    _join_requests(joined, request[writes])
    out[writes] = joined
    return out, known


def _pages(found: npt.NDArray[np.void], trim: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Each row's first page and number of pages, both i64[rows]; 0 for a trim of less than one."""
    begin = found["offset"].astype(np.int64)
    end = begin + found["length"].astype(np.int64)
    first = np.where(trim, -(-begin // BLOCK_BYTES), begin // BLOCK_BYTES)
    last = np.where(trim, end // BLOCK_BYTES, -(-end // BLOCK_BYTES))
    return first, np.clip(last - first, 0, _PAGES_MAX)


def telemetry(raw: Records) -> Records:
    """The records that the filesystem would have reported for these requests."""
    return _core.as_telemetry(raw).view(raw.dtype)
