"""The telemetry record as a numpy structured type, and raw traces turned into such records."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import IO, cast

import numpy as np
import numpy.typing as npt

from classifierd.contexts import VStream

BLOCK_BYTES = 4096
KIND_NEW, KIND_OVERWRITE, KIND_TRIM = 0, 1, 2

RECORD = np.dtype(
    [
        ("clock_pages", "<u8"),
        ("block", "<u8"),
        ("pages", "<u4"),
        ("request_pages", "<u4"),
        ("request_offset", "<u4"),
        ("time_ms", "<u4"),
        ("vstream", "<u2"),
        ("pstream", "<u2"),
        ("kind", "u1"),
        ("reserved", "u1", (3,)),
    ]
)
assert RECORD.itemsize == 40

Records = npt.NDArray[np.void]


def from_bytes(data: npt.NDArray[np.uint8]) -> Records:
    """View what _core hands out, 40 bytes a record, as records."""
    return data.view(RECORD)


def make(
    block: npt.ArrayLike,
    pages: npt.ArrayLike,
    *,
    trim: npt.ArrayLike = False,
    vstream: npt.ArrayLike = 0,
) -> Records:
    """Whole requests as records; kind and clock are for _core.as_telemetry to fill in."""
    blocks = np.atleast_1d(np.asarray(block, dtype=np.uint64))
    out = np.zeros(len(blocks), RECORD)
    out["block"] = blocks
    out["pages"] = pages
    out["request_pages"] = out["pages"]
    out["vstream"] = vstream
    out["kind"] = np.where(np.asarray(trim), KIND_TRIM, KIND_NEW)
    return out


class TraceError(ValueError):
    """A trace file that cannot be read as one."""


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return cast("IO[str]", gzip.open(path, "rt", newline=""))
    return path.open(newline="")


def _columns(path: Path) -> dict[str, list[str]]:
    with _open(path) as file:
        rows = list(csv.reader(file))
    if not rows or "op" not in rows[0]:
        msg = f"{path}: no header line with an op column"
        raise TraceError(msg)
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        msg = f"{path}: lines of different widths"
        raise TraceError(msg)
    return dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=False))


def _numbers(columns: dict[str, list[str]], name: str) -> npt.NDArray[np.int64] | None:
    return np.array(columns[name], dtype=np.int64) if name in columns else None


def _vstreams(columns: dict[str, list[str]]) -> tuple[npt.NDArray[np.int64] | int, list[VStream]]:
    """vStreams by number if the trace has them, else one a (comm, ext, dir) met."""
    numbers = _numbers(columns, "vstream")
    if numbers is not None:
        return numbers, [VStream(number=int(n)) for n in np.unique(numbers)]
    if not {"comm", "ext", "dir"} <= columns.keys():
        return 0, [VStream(number=0)]
    keys = np.array([columns["comm"], columns["ext"], columns["dir"]]).T
    names, inverse = np.unique(keys, axis=0, return_inverse=True)
    known = [
        VStream(number=i + 1, source="context", comm=str(c), ext=str(e), dir=str(d))
        for i, (c, e, d) in enumerate(names)
    ]
    return inverse.reshape(-1) + 1, known


def read_trace(path: Path) -> tuple[Records, list[VStream]]:
    """Read ts_us,op,offset_bytes,length_bytes[,vstream|,comm,ext,dir][,request_…] (CSV, gzip).

    op is R, W or T. Parts of pages count as whole ones. Raises TraceError or OSError.
    """
    columns = _columns(path)
    try:
        offset, length = _numbers(columns, "offset_bytes"), _numbers(columns, "length_bytes")
        if offset is None or length is None:
            msg = f"{path}: offset_bytes and length_bytes are needed"
            raise TraceError(msg)
        vstream, known = _vstreams(columns)
        request_pages = _numbers(columns, "request_pages")
        request_offset = _numbers(columns, "request_offset")
    except (ValueError, OverflowError) as error:
        msg = f"{path}: {error}"
        raise TraceError(msg) from error
    op = np.char.upper(np.array(columns["op"], dtype=str))
    first = offset // BLOCK_BYTES
    pages = (offset + length + BLOCK_BYTES - 1) // BLOCK_BYTES - first
    out = make(first, pages, trim=op == "T", vstream=vstream)
    if request_pages is not None and request_offset is not None:
        out["request_pages"], out["request_offset"] = request_pages, request_offset
    return out[np.isin(op, ["W", "T"]) & (pages > 0) & (first >= 0)], known
