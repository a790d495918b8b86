"""Traces that say which pStream each write goes to, for ssd-sim."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import numpy.typing as npt

from classifierd.records import BLOCK_BYTES, KIND_TRIM, Records, pages_one_by_one


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
            row[starts] + 1,  # 0 is no request
            tag[starts],
        ]
    )
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write("ts_us,op,offset_bytes,length_bytes,vstream,context,request,pstream\n")
        np.savetxt(file, table, fmt="%d,%c,%d,%d,%d,%d,%d,%d")
