"""The telemetry record (base/wire/telemetry.h) as a numpy structured type."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BLOCK_BYTES = 4096
CHUNK_PAGES = 256  # chunk_counter.h
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
        ("age", "u1"),  # class of what is overwritten
        ("generation", "u1"),  # of the use of the vStream's number
        ("file_place", "u1"),  # of the request: 1 + half_log2 of the pages before it; 0: unknown
    ]
)
assert RECORD.itemsize == 40

Records = npt.NDArray[np.void]
Ints = npt.NDArray[np.int64]


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
    """Whole requests as records; kind, age and clock are for _core.as_telemetry to fill in."""
    blocks = np.atleast_1d(np.asarray(block, dtype=np.uint64))
    out = np.zeros(len(blocks), RECORD)
    out["block"] = blocks
    out["pages"] = pages
    out["request_pages"] = out["pages"]
    out["vstream"] = vstream
    out["kind"] = np.where(np.asarray(trim), KIND_TRIM, KIND_NEW)
    return out


def make_overwrites(
    block: npt.ArrayLike, pages: npt.ArrayLike, *, age: npt.ArrayLike, vstream: npt.ArrayLike = 0
) -> Records:
    """Whole requests that overwrite what is of this age class (1 to _core.AGE_OLD)."""
    out = make(block, pages, vstream=vstream)
    out["kind"], out["age"] = KIND_OVERWRITE, age
    return out


def pages_one_by_one(pages: Ints) -> tuple[Ints, Ints]:
    """The record of each page, of records of so many pages, and the page's place in it."""
    row = np.repeat(np.arange(len(pages)), pages)
    return row, np.arange(len(row)) - (np.cumsum(pages) - pages)[row]
