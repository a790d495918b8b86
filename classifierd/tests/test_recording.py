"""Recordings: a trace with contexts and a device, read back as it was; others are refused."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from classifierd import recording, traces
from classifierd.requests import Requests
from classifierd.traces import TraceError


def test_a_trace_of_a_long_time_is_read_in_little_memory(tmp_path: Path) -> None:
    path, count = tmp_path / "trace.csv", 50_000
    rows = (f"{1_700_000_000_000_000 + i},W,{i << 20},4096,0\n" for i in range(count))
    path.write_text(recording.HEADER + "\n" + "".join(rows))
    tracemalloc.start()
    try:
        read = recording.read(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read is not None
    assert len(read.requests.log) == count
    assert most < 160 * count


@pytest.mark.parametrize(
    "row", ["1,R,0,4096,0", "1,X,0,4096,0", "1,WX,0,4096,0", "1,W,0", "1,W,x,4096,0",
            "1,W,0,1.5,0", "1,W,0,99999999999999999999,0"]
)  # fmt: skip
def test_rows_that_are_no_writes_are_refused(tmp_path: Path, row: str) -> None:
    path = tmp_path / "trace.csv"
    for before in ("", "1,W,0,4096,0\n"):
        path.write_text(f"{recording.HEADER}\n{before}{row}\n")
        with pytest.raises(TraceError):
            recording.read(path)


def test_a_device_is_read_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    held = np.array([[3, 2], [12, 4]])
    columns = (np.array([False, True]), *np.array([[0, 8192], [4096, 4096], [0, 0], [2, 0]]))
    trim, offset, length, log, owner = columns
    asked = Requests(trim, offset, length, log != 0, owner, offset)
    made = recording.Recording(asked, {("db", "x"): 2}, recording.Disk(16 * 4096, 4096, held))
    with path.open("w") as file:
        recording.write(file, made)
    read = recording.read(path)
    assert read is not None
    assert read.disk.held is not None
    assert read.disk.held.tolist() == held.tolist()
    assert (read.disk.capacity_bytes, read.disk.used_bytes) == (16 * 4096, 4096)
    assert read.names == made.names
    for name in ("trim", "offset_bytes", "length_bytes", "log", "owner", "time_us"):
        assert getattr(read.requests, name).tolist() == getattr(asked, name).tolist()
    sent, _ = traces.read(path)  # as any other trace
    assert sent["block"].tolist() == [0, 2]


@pytest.mark.parametrize("comment", ["#held,0,1", "#held,-1,1", "#device,1,0", "#device,4096,x"])
def test_a_device_that_is_none_is_refused(tmp_path: Path, comment: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"{recording.HEADER}\n{comment}\n1,W,0,4096,0\n")
    with pytest.raises(TraceError):
        recording.read(path)


@pytest.mark.parametrize(
    "comment",
    ["#context,2", "#context,1,db,", "#context,65536,db,", "#context,x,db,", "#context,2,a,b,c"],
)
def test_contexts_that_are_none_are_refused(tmp_path: Path, comment: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"{recording.HEADER}\n{comment}\n1,W,0,4096,2\n")
    with pytest.raises(TraceError):
        recording.read(path)


def test_what_no_context_names_is_nobodys(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"{recording.HEADER}\n#context,2,db,\n1,W,0,4096,2\n2,W,0,4096,7\n")
    read = recording.read(path)
    assert read is not None
    assert read.requests.owner.tolist() == [2, 0]
    path.write_text(f"{recording.HEADER}\n#context,2,db,\n")
    empty = recording.read(path)
    assert empty is not None
    assert len(empty.requests.log) == 0
