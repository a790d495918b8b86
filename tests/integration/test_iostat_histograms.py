"""`streamctl iostat -w` and `-r`: exact counts of known requests, as JSON and as tables."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any

import pytest
from tests.integration.pairs import BIN, Mount, Pair, run

STREAMCTL = BIN / "streamctl"
Row = dict[str, Any]


@pytest.fixture
def direct(pair: Pair) -> Mount:
    """A mount without the page cache: each read and write of a program is a request."""
    return pair.mount("direct_io")


def told(mount: Mount, option: str) -> Row:
    answer: Row = json.loads(run(STREAMCTL, "iostat", mount.point, option, "--json").stdout)
    return answer


def of(rows: list[Row], **keys: str) -> Row:
    (found,) = (row for row in rows if keys.items() <= row.items())
    return found


def column(text: str, title: str) -> dict[str, str]:
    """Return a column of a table by its rows' titles, which hold no blanks (-p)."""
    heading, *lines = text.splitlines()[1:]
    at = heading.index(title) + len(title)
    return {line.split()[0]: line[:at].split()[-1] for line in lines}


def use(mount: Mount) -> None:
    """Write 5 times 4 KiB, 3 times 5,000 bytes, once 64 KiB; read twice 100 bytes."""
    sizes = [4096] * 5 + [5000] * 3 + [65536]
    descriptor = os.open(mount / "file", os.O_CREAT | os.O_RDWR)
    try:
        for size in sizes:
            assert os.pwrite(descriptor, b"x" * size, 0) == size
        for _ in range(2):
            assert len(os.pread(descriptor, 100, 0)) == 100
    finally:
        os.close(descriptor)
    run(STREAMCTL, "sync", mount.point)


WRITES = [[4064, 4096, 5], [4992, 5056, 3], [65024, 65536, 1]]


@pytest.mark.quick
def test_sizes_of_requests_are_exact(direct: Mount) -> None:
    device = of(told(direct, "-r")["sizes"], side="device", op="write")
    written = json.loads(run(STREAMCTL, "status", direct.point, "--json").stdout)
    use(direct)
    answer = told(direct, "-r")
    writes = of(answer["sizes"], side="kernel", op="write")
    assert answer["seconds"] is None, "since the mount"
    assert writes["buckets"] == WRITES
    assert (writes["count"], writes["sum_bytes"]) == (9, 5 * 4096 + 3 * 5000 + 65536)
    reads = of(answer["sizes"], side="kernel", op="read")
    assert (reads["buckets"], reads["sum_bytes"]) == ([[99, 100, 2]], 200)
    status = json.loads(run(STREAMCTL, "status", direct.point, "--json").stdout)
    moved = of(answer["sizes"], side="device", op="write")["sum_bytes"] - device["sum_bytes"]
    assert moved == status["device"]["written_bytes"] - written["device"]["written_bytes"]
    assert moved >= 65536
    table = run(STREAMCTL, "iostat", direct.point, "-r", "-p").stdout
    shown = column(table, "kernel write")
    assert {size: shown[size] for size in ("128", "4096", "8192", "16384", "65536")} == {
        **{"128": "0", "4096": "5", "8192": "3", "16384": "0", "65536": "1"},
    }
    assert column(table, "kernel read")["128"] == "2"


@pytest.mark.quick
def test_times_are_counted_by_operation(direct: Mount) -> None:
    for number in range(7):
        (direct / f"d{number}").mkdir()
    use(direct)
    ops = told(direct, "-w")["ops"]
    assert of(ops, op="mkdir")["count"] == 7
    assert of(ops, op="write")["count"] == 9
    for op in ops:
        buckets = op["buckets"]
        assert sum(count for _, _, count in buckets) == op["count"] > 0
        assert all(above < up_to for above, up_to, _ in buckets)
        ordered = [op[f"{name}_us"] for name in ("p50", "p99", "p999", "max")]
        assert ordered == sorted(ordered)
        assert buckets[-1][0] < 1000 * op["max_us"] <= buckets[-1][1]
    table = run(STREAMCTL, "iostat", direct.point, "-w", "-p").stdout
    mkdir = column(table, "mkdir")
    assert list(mkdir)[-4:] == ["p50", "p99", "p99.9", "max"]
    assert sum(int(count) for row, count in mkdir.items() if row.isdigit() or row == "more") == 7
    bounds = [int(row) for row in mkdir if row.isdigit()]
    assert bounds == [bounds[0] << i for i in range(len(bounds))], "powers of two"
    assert bounds[0] % 1000 == 0
    assert abs(int(mkdir["max"]) - 1000 * of(ops, op="mkdir")["max_us"]) <= 1


@pytest.mark.parametrize("option", ["-r", "-w"])
def test_an_interval_has_its_own_requests_alone(direct: Mount, option: str) -> None:
    use(direct)
    words = [str(each) for each in (STREAMCTL, "iostat", direct.point, "0.2", "--json", option)]

    def writes(line: str) -> int:
        answer = json.loads(line)
        assert answer["seconds"] >= 0.2
        rows = answer["sizes"] if option == "-r" else answer["ops"]
        keys = {"op": "write"} | ({"side": "kernel"} if option == "-r" else {})
        return sum(row["count"] for row in rows if keys.items() <= row.items())

    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert writes(process.stdout.readline()) == 0
            use(direct)
            seen, deadline = 0, time.monotonic() + 60
            while seen < 9:
                assert time.monotonic() < deadline
                seen += writes(process.stdout.readline())
            assert (seen, writes(process.stdout.readline())) == (9, 0)
        finally:
            process.terminate()
    tables = run(STREAMCTL, "iostat", direct.point, "0.1", "2", option).stdout
    assert tables.count("in 0.1 s") == 2
