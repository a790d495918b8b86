"""Traces of what a device was sent, as ssd-sim and the filesystem's recorder write them.

CSV with a header line, columns found by name, or binary (trace/trace.h); either gzipped.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.contexts import VSTREAMS, VStream, parse_streams
from classifierd.errors import sentence
from classifierd.records import BLOCK_BYTES, KIND_TRIM, Ints, Records, make, pages_one_by_one

Columns = dict[str, npt.NDArray[np.str_] | Ints]

_MAGIC, _VERSION = b"SFSTRC01", 1
_BINARY = np.dtype(
    [
        ("ts_us", "<u8"),
        ("offset_bytes", "<u8"),
        ("length_bytes", "<u8"),
        ("context", "<u4"),
        ("request", "<u4"),
        ("vstream", "<u2"),
        ("pstream", "<u2"),
        ("op", "S1"),
        ("reserved", "u1", (3,)),
    ]
)
assert _BINARY.itemsize == 40


class TraceError(ValueError):
    """A trace file that cannot be read as one."""


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError) as error:
        msg = f"{path}: {error}"
        raise TraceError(msg) from error


def _binary(path: Path, data: bytes) -> Columns:
    version, size = struct.unpack_from("<II", data.ljust(16, b"\0"), 8)
    if version != _VERSION or size != _BINARY.itemsize or (len(data) - 16) % size:
        msg = f"{path}: of another version, or cut off"
        raise TraceError(msg)
    rows = np.frombuffer(data, _BINARY, offset=16)
    numbers = ("offset_bytes", "length_bytes", "vstream", "request")
    return {"op": rows["op"].astype(str)} | {key: rows[key].astype(np.int64) for key in numbers}


def _text(path: Path, data: bytes) -> Columns:
    try:
        lines = (line for line in io.StringIO(data.decode()) if not line.startswith("#"))
        rows = list(csv.reader(lines))
        if not rows or "op" not in rows[0]:
            msg = "no header line with an op column"
            raise TraceError(msg)
        if any(len(row) != len(rows[0]) for row in rows):
            msg = "lines of different widths"
            raise TraceError(msg)
        cells = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=False))
        texts = ("op", "comm", "ext", "dir")
        numbers = ("offset_bytes", "length_bytes", "vstream", "request")
        return {key: np.array(cells[key], str) for key in texts if key in cells} | {
            key: np.array(cells[key], np.int64) for key in numbers if key in cells
        }
    except (ValueError, OverflowError) as error:
        msg = f"{path}: {sentence(error)}"
        raise TraceError(msg) from error


def _vstreams(columns: Columns) -> tuple[npt.NDArray[np.generic] | int, list[VStream]]:
    """By number if the trace has them, else one a (comm, ext, dir) met."""
    if "vstream" in columns:
        numbers = np.unique(columns["vstream"]).astype(np.int64)
        if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < VSTREAMS:
            msg = f"vStreams are 0 to {VSTREAMS - 1}"
            raise TraceError(msg)
        return columns["vstream"], [VStream(int(n)) for n in numbers]
    if not {"comm", "ext", "dir"} <= columns.keys():
        return 0, [VStream(0)]
    keys = np.array([columns["comm"], columns["ext"], columns["dir"]]).T
    names, inverse = np.unique(keys, axis=0, return_inverse=True)
    known = [
        VStream(i + 1, "context", "", str(comm), str(ext), str(directory))
        for i, (comm, ext, directory) in enumerate(names)
    ]
    number = inverse.reshape(-1) + 1
    return np.where(number < VSTREAMS, number, 0), known[: VSTREAMS - 1]


def _join_requests(out: Records, request: Ints) -> None:
    """Parts of one request know its length and their place in it."""
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

    Parts of pages count as whole ones. Raises TraceError or OSError.
    """
    data = _bytes(path)
    columns = _binary(path, data) if data.startswith(_MAGIC) else _text(path, data)
    if not {"offset_bytes", "length_bytes"} <= columns.keys():
        msg = f"{path}: offset_bytes and length_bytes are needed"
        raise TraceError(msg)
    offset = columns["offset_bytes"].astype(np.int64)
    length = columns["length_bytes"].astype(np.int64)
    vstream, known = _vstreams(columns)
    first = offset // BLOCK_BYTES
    pages = (offset + length + BLOCK_BYTES - 1) // BLOCK_BYTES - first
    op = np.char.upper(columns["op"].astype(str))
    out = make(first, np.clip(pages, 0, None), trim=op == "T", vstream=vstream)
    keep = np.isin(op, ["W", "T"]) & (pages > 0) & (first >= 0)
    writes = keep & (op == "W")
    if "request" in columns and writes.any():
        joined = out[writes]
        _join_requests(joined, columns["request"].astype(np.int64)[writes])
        out[writes] = joined
    return out[keep], known


def write_tagged(path: Path, records: Records, tags: npt.NDArray[np.uint8]) -> None:
    """Write telemetry records as a CSV trace for `ssd-sim replay --placement tags`.

    A run is split where its pStream changes. `tags` holds one pStream a page written.
    """
    writes = records["kind"] != KIND_TRIM
    pages = np.where(writes, records["pages"], 1).astype(np.int64)
    row, place = pages_one_by_one(pages)
    tag = np.zeros(len(row), np.int64)
    tag[writes[row]] = tags
    starts = np.flatnonzero((place == 0) | (np.diff(tag, prepend=-1) != 0))
    run = np.diff(np.append(starts, len(row)))
    source = records[row[starts]]
    length = np.where(writes[row[starts]], run, source["pages"])
    table = np.column_stack(
        [
            row[starts],  # stands for the time: the order is what counts
            np.where(writes[row[starts]], ord("W"), ord("T")),
            (source["block"].astype(np.int64) + place[starts]) * BLOCK_BYTES,
            length * BLOCK_BYTES,
            source["vstream"],
            np.zeros(len(starts), np.int64),
            row[starts],
            tag[starts],
        ]
    )
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write("ts_us,op,offset_bytes,length_bytes,vstream,context,request,pstream\n")
        np.savetxt(file, table, fmt="%d,%c,%d,%d,%d,%d,%d,%d")


def telemetry(raw: Records) -> Records:
    """What the filesystem would have reported for these requests."""
    return _core.as_telemetry(raw).view(raw.dtype)
