"""Workloads and traces on ssd-sim: replay, bench, compare, import, list, and what each refuses."""

import csv
import gzip
import json
import math
import os
import pty
import random
import signal
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("STREAMFS_BIN", ROOT / "build/release/bin"))
SSD_SIM = BIN / "ssd-sim"
USAGE, FOREIGN, NO_DEVICE, TOO_SMALL = 64, 65, 66, 74
PAGE = 4096
SMALL = ("--footprint", "64M", "--pages-per-block", "64", "--writes", "100000", "--warmup", "0.5")


class Result(NamedTuple):
    """The exit code and output of a program."""

    status: int
    out: str
    err: str


def ssd_sim(*arguments: str | Path) -> Result:
    """Run ssd-sim to its end."""
    done = subprocess.run(
        [SSD_SIM, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def must(*arguments: str | Path) -> str:
    """Run ssd-sim, which has to succeed without a word on standard error; its output."""
    done = ssd_sim(*arguments)
    assert (done.status, done.err) == (0, ""), done
    return done.out


def shown(*arguments: str | Path) -> dict[str, Any]:
    """Run a replay or a bench; its JSON."""
    result: dict[str, Any] = json.loads(must(*arguments, "--json"))
    return result


def put(path: Path, lines: Iterable[str]) -> Path:
    """Write a trace of these lines."""
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def random_trace(path: Path, pages: int, writes: int, seed: int = 1) -> Path:
    """Write a trace of random page writes with some trims."""
    chance = random.Random(seed)
    ops = "WWWWWWWWWT"
    lines = (
        f"{i},{chance.choice(ops)},{chance.randrange(pages) * PAGE},{PAGE}" for i in range(writes)
    )
    return put(path, lines)


# Replay and bench


@pytest.mark.parametrize("placement", ["nosep", "sepgc", "sepbit", "oracle"])
def test_every_policy_gets_the_same_device(tmp_path: Path, placement: str) -> None:
    trace = random_trace(tmp_path / "t.csv.gz", 5000, 40_000)
    got = shown("replay", trace, "--placement", placement, "--pages-per-block", "64")
    blocks = math.ceil(got["peak_live_pages"] * 1.07 / 64) + 12
    assert got["physical_pages"] == blocks * 64
    assert got["effective_spare"] == pytest.approx(blocks * 64 / got["peak_live_pages"] - 1)
    assert got["nand_pages"] == got["host_pages"] + got["gc_pages"] + got["pad_pages"]
    assert got["waf"] == pytest.approx(got["nand_pages"] / got["host_pages"])


def test_trims_lower_the_peak_and_can_be_ignored(tmp_path: Path) -> None:
    trace = random_trace(tmp_path / "t.csv.gz", 5000, 40_000)
    honoured = shown("replay", trace, "--pages-per-block", "64")
    ignored = shown("replay", trace, "--pages-per-block", "64", "--ignore-trims")
    assert honoured["peak_live_pages"] < ignored["peak_live_pages"] == ignored["footprint_pages"]


def test_prefill_and_footprint_are_the_reference_setup(tmp_path: Path) -> None:
    trace = random_trace(tmp_path / "t.csv.gz", 5000, 40_000)
    words = ("--size", "footprint", "--prefill", "--pages-per-block", "64")
    got = shown("replay", trace, *words)
    assert got["physical_pages"] == (math.ceil(got["footprint_pages"] * 1.07 / 64) + 12) * 64
    assert got["peak_live_pages"] == got["footprint_pages"]
    bare = shown("replay", trace, "--pages-per-block", "64")
    assert got["host_pages"] == bare["host_pages"]  # the prefill is not counted


def test_several_traces_are_one_after_the_other(tmp_path: Path) -> None:
    one = random_trace(tmp_path / "a.csv", 3000, 20_000, seed=1)
    two = random_trace(tmp_path / "b.csv.gz", 3000, 20_000, seed=2)
    both = put(
        tmp_path / "c.csv", (one.read_text() + gzip.decompress(two.read_bytes()).decode()).split()
    )
    words = ("--pages-per-block", "64", "--placement", "oracle")
    split, joined = shown("replay", one, two, *words), shown("replay", both, *words)
    assert {**split, "workload": ""} == {**joined, "workload": ""}


def test_memory_does_not_grow_with_the_length_of_the_trace(tmp_path: Path) -> None:
    trace = random_trace(tmp_path / "t.csv.gz", 2000, 200_000)

    def peak_kib(times: int) -> int:
        child = os.posix_spawn(
            SSD_SIM,
            [str(SSD_SIM), "replay", *[str(trace)] * times],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
        )
        _, status, usage = os.wait4(child, 0)
        assert status == 0
        return usage.ru_maxrss

    assert peak_kib(20) < peak_kib(1) + 2048  # 3.4 M more writes


@pytest.mark.parametrize(
    "workload",
    [
        *("uniform", "hotcold", "zipf", "shifting", "fio4", "emmc3", "vstream64"),
        *("rocksdb-levels", "smartphone", "smartphone-steady", "iozone-random"),
    ],
)
def test_a_bench_repeats_bit_for_bit(workload: str) -> None:
    first = must("bench", workload, *SMALL, "--json")
    assert must("bench", workload, *SMALL, "--json") == first
    assert must("bench", workload, *SMALL, "--json", "--seed", "2") != first
    got = json.loads(first)
    assert got["host_pages"] == 50_000
    assert {"waf", "nand_pages", "gc_pages", "pad_pages", "erases", "effective_spare"} <= set(got)
    assert sum(stream["host_pages"] for stream in got["per_stream"]) == 50_000


def test_streams_are_worth_what_the_sources_say() -> None:
    words = ("--footprint", "512M", "--warmup", "0.5", "--writes", "1500000")
    for workload in ("fio4", "emmc3"):
        off = shown("bench", workload, *words)["waf"]
        on = shown("bench", workload, *words, "--placement", "tags")["waf"]
        assert on <= 1.02 < 2 * on < off


def test_four_jobs_live_twice_as_long_with_streams_at_seven_percent_spare() -> None:
    pages = 1 << 18
    device = ("--footprint", str(pages * PAGE), "--physical-blocks", str(pages * 107 // 25600))
    words = (*device, "--writes", str(6 * pages), "--warmup", "0.4")
    off, on = (shown("bench", "fio4", "--placement", p, *words) for p in ("sepgc", "tags"))
    assert off["effective_spare"] == on["effective_spare"] == pytest.approx(0.07, abs=0.002)
    assert on["waf"] <= 1.02
    assert off["waf"] > 2 * on["waf"]


def test_streams_help_less_where_a_neighbour_is_random() -> None:
    """A sequential stream and two random ones: published for real FDP drives, 2.6 to 4.5."""
    pages = 1 << 18
    words = ("--footprint", str(pages * PAGE), "--writes", str(8 * pages), "--warmup", "0.5")

    def waf(*options: str) -> float:
        return float(shown("bench", "noisy", *words, *options)["waf"])

    mixed = waf("--placement", "sepgc")
    initially = waf("--placement", "tags", "--gc", "initially-isolated")
    own = ("--placement", "tags", "--gc", "persistently-isolated")
    persistently, split = waf(*own), waf(*own, "--victim", "spare-split")
    assert 2.6 < persistently < initially < 4.5
    assert initially < mixed
    assert persistently < split < mixed, "spare of its own is worth less than a pool to the random"


# A child's peak begins with that of the process it was forked from: let that be a small one.
PEAK_OF_CHILD = """
import os, sys
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_twelve_bytes_a_page_are_enough() -> None:
    words = ("bench", "uniform", "--op", "0.07", "--footprint", "16G", "--writes", "1000000")
    done = subprocess.run(
        [sys.executable, "-c", PEAK_OF_CHILD, SSD_SIM, *words, "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(done.stderr) * 1024 / json.loads(done.stdout)["physical_pages"] <= 12


def test_a_device_that_is_not_full_copies_less() -> None:
    full, part = (shown("bench", "emmc3", *SMALL, "--fill", fill) for fill in ("1", "0.8"))
    assert part["peak_live_pages"] == full["peak_live_pages"]
    assert part["physical_pages"] > 1.2 * full["physical_pages"]
    assert part["waf"] < full["waf"]


# Bad input


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("2,X,0,4096", "line 2: operation 'X'"),
        ("2,W,-4096,4096", "line 2: offset_bytes '-4096'"),
        ("2,W,9223372036854775807,4096", "line 2: offset 9223372036854775807"),
        ("2,W,99999999999999999999,1", "line 2: offset_bytes '99999999999999999999'"),
        ("2,W,0,0", "line 2: length 0"),
        ("2,W,0,lots", "line 2: length_bytes 'lots'"),
        ("2,W,0,99999999999", "line 2: length 99999999999"),
        ("2,W", "line 2: no offset_bytes"),
        ("garbage", "line 2: ts_us 'garbage'"),
        ("\0\1\2", "line 2: ts_us '???'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    trace = put(tmp_path / "t.csv", ["1,W,0,4096", line, "3,W,0,4096"])
    done = ssd_sim("replay", trace)
    assert done.status == FOREIGN
    assert done.out == ""
    assert f"t.csv: {complaint}" in done.err
    assert done.err.count("\n") == 1


def test_offsets_outside_the_device_are_named(tmp_path: Path) -> None:
    trace = put(tmp_path / "t.csv", ["1,W,0,4096", "2,W,1048576,4096"])
    done = ssd_sim("replay", trace, "--size", "1M")
    assert done.status == FOREIGN
    assert "line 2: offset 1048576 + length 4096 lies beyond the device's 1048576 bytes" in done.err
    done = ssd_sim("replay", trace, "--shift", "-1")
    assert done.status == FOREIGN
    assert "line 1: offset 0 with a shift of -1" in done.err


@pytest.mark.parametrize("cut", [1, 9, 1000])
def test_a_gzip_file_that_is_cut_off_is_named(tmp_path: Path, cut: int) -> None:
    trace = random_trace(tmp_path / "t.csv.gz", 5000, 5000)
    trace.write_bytes(trace.read_bytes()[:-cut])
    done = ssd_sim("replay", trace)
    assert done.status == FOREIGN
    assert "cut off" in done.err
    assert "line" in done.err


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (["replay", "/nowhere/t.csv"], NO_DEVICE, "/nowhere/t.csv"),
        (["replay"], USAGE, "trace"),
        (["bench", "magic"], USAGE, "rocksdb-levels"),
        (["bench", "uniform", "--placement", "magic"], USAGE, "sepbit"),
        (["bench", "uniform", "--victim", "magic"], USAGE, "greedy"),
        (["bench", "uniform", "--footprint", "4K"], USAGE, "1 pages"),
        (["bench", "uniform", "--footprint", "100000T"], USAGE, "--footprint"),
        (["bench", "hotcold", "--hot", "0.9"], USAGE, "--hot 0.9"),
        (["bench", "hotcold", "--hot", "2/0.1"], USAGE, "2"),
        (["bench", "uniform", "--size", "1M"], USAGE, "256"),
        (
            ["bench", "uniform", "--streams", "0", "--placement", "tags"],
            USAGE,
            "--streams: Value 0",
        ),
        (["bench", "uniform", "--physical-pages", "1000"], USAGE, "1000"),
        (["bench", "uniform", "--pages-per-block", "0"], USAGE, "pages-per-block"),
        (["bench", "uniform", *SMALL, "--physical-blocks", "200"], TOO_SMALL, "200 blocks"),
        (["compare"], USAGE, "--workload"),
        (["compare", "--workload", "uniform", "--placement", "nosep,magic"], USAGE, "'magic'"),
        (["import", "magic", "x", "-o", "y"], USAGE, "vscsi"),
    ],
)
def test_a_mistake_is_named(words: list[str], status: int, complaint: str) -> None:
    done = ssd_sim(*words)
    assert done.status == status, done
    assert done.out == ""
    assert complaint in done.err


# Import


def vscsi(command: int, sector: int, length: int, ts_us: int) -> bytes:
    """Pack a version 2 record."""
    return struct.pack("<HHIIIQQQ", command, 0x200, 1, length, 1, sector, ts_us, 0)


FOREIGN_TRACES: dict[str, bytes] = {
    "fio": b"fio version 2 iolog\nf add\nf open\nf write 4096 8192\nf trim 4096 4096\nf close\n",
    "blkparse": (
        b"  8,0    3        1     0.000000000   697  D  WS 8 + 16 [a]\n"
        b"  8,0    3        2     0.100000000   697  D   D 8 + 8 [a]\n"
    ),
    "msr": b"128166372003061629,hm,1,Write,4096,8192,413\n128166372003061639,hm,1,Read,0,512,1\n",
    "alibaba": b"419,W,4096,8192,1577808144360767\n419,R,0,4096,1577808144360768\n",
    "vscsi": vscsi(0x2A, 8, 8192, 5) + vscsi(0x28, 0, 512, 6),
    "f2fs": b"".join(
        b" a-9 [001] ..... 5.0: f2fs_submit_folio_write: dev = (259,2), ino = 3, "
        b"newaddr = 0x%x, rw = WRITE(S), type = WARM_DATA\n" % block
        for block in (1, 2)
    ),
}


@pytest.mark.parametrize("name", FOREIGN_TRACES)
@pytest.mark.parametrize("output", ["out.csv", "out.trace.gz"])
def test_traces_of_others_become_ours(tmp_path: Path, name: str, output: str) -> None:
    source = tmp_path / "in"
    source.write_bytes(gzip.compress(FOREIGN_TRACES[name]))
    assert "1 writes" in must("import", name, source, "-o", tmp_path / output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", output]
    got = shown("replay", tmp_path / output)
    assert got["host_pages"] == 2
    assert got["footprint_pages"] == 2
    if output == "out.csv":
        rows = list(csv.DictReader((tmp_path / output).read_text().splitlines()))
        assert [rows[0][key] for key in ("op", "offset_bytes", "length_bytes")] == [
            "W",
            "4096",
            "8192",
        ]


def test_a_killed_import_leaves_nothing(tmp_path: Path) -> None:
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        pytest.skip("the file system of the tests has no O_TMPFILE")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    line = "128166372003061629,usr,0,Write,4096,8192,1331\n"
    command: list[str | Path] = [SSD_SIM, "import", "msr", pipe, "-o", tmp_path / "out.csv"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process, pipe.open("w") as feed:
        feed.write(line * 200_000)  # far more than fits in between: most of it was converted
        feed.flush()
        opened = [str(fd.readlink()) for fd in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert any(target.startswith(str(tmp_path)) and "deleted" in target for target in opened)
        process.kill()
        assert process.wait(20) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("name", FOREIGN_TRACES)
def test_a_failed_import_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    source, output = tmp_path / "in", tmp_path / "out.csv"
    source.write_bytes(FOREIGN_TRACES[name] + b"garbage\n")
    output.write_text("mine")
    done = ssd_sim("import", name, source, "-o", output)
    assert done.status == FOREIGN
    assert "record 3" in done.err or "line" in done.err
    assert output.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out.csv"]


# Compare


def test_compare_writes_what_it_shows(tmp_path: Path) -> None:
    trace = random_trace(tmp_path / "t.csv.gz", 5000, 40_000)
    table = must(
        "compare",
        trace,
        *("--workload", "fio4,rocksdb-levels", "--placement", "nosep,sepbit,oracle", *SMALL),
        *("--victim", "greedy,cost-benefit", "--csv", tmp_path / "c.csv"),
        *("--json", tmp_path / "c.json", "--png", tmp_path / "c.png"),
        *("--svg", tmp_path / "c.svg"),
    )
    lines = table.splitlines()
    assert lines[0].split() == ["workload", "victim", "nosep", "sepbit", "oracle"]
    assert len(lines) == 1 + 3 * 2 + 1
    rows = list(csv.DictReader((tmp_path / "c.csv").read_text().splitlines()))
    results = json.loads((tmp_path / "c.json").read_text())
    assert len(rows) == len(results) == 3 * 2 * 3
    for row, result in zip(rows, results, strict=True):
        for key in ("workload", "victim", "placement"):
            assert row[key] == result[key]
        assert float(row["waf"]) == pytest.approx(result["waf"], abs=1e-6)
        assert row["workload"] in table
        assert f"{result['waf']:.3f}" in table
    by_name = {(r["workload"], r["victim"], r["placement"]): r for r in results}
    assert by_name["fio4", "greedy", "nosep"]["gap_closed"] == 0
    assert by_name["fio4", "greedy", "oracle"]["gap_closed"] == 1
    alone = shown("bench", "fio4", "--placement", "sepbit", *SMALL)
    assert alone["waf"] == by_name["fio4", "greedy", "sepbit"]["waf"]
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG\r\n")
    words = "".join(ET.parse(tmp_path / "c.svg").getroot().itertext())
    for word in ("WAF", "fio4", "cost-benefit", "sepbit", f"{rows[0]['waf']:.4}"):
        assert word in words
    assert must("compare", "--workload", "fio4", *SMALL, "--json", "-", "--placement", "nosep")


def test_a_comparison_that_fails_leaves_no_files(tmp_path: Path) -> None:
    good = random_trace(tmp_path / "a.csv", 5000, 5000)
    bad = put(tmp_path / "b.csv", ["nonsense"])
    done = ssd_sim("compare", good, bad, "--csv", tmp_path / "c.csv", "--png", tmp_path / "c.png")
    assert done.status == FOREIGN
    assert "b.csv: line 1" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv"]
    done = ssd_sim("compare", good, "--placement", "nosep", "--csv", tmp_path / "none" / "c.csv")
    assert done.status == NO_DEVICE


# The rest


def test_list_names_everything() -> None:
    names = json.loads(must("list", "--json"))
    assert {"nosep", "sepgc", "sepbit", "oracle", "oracle-host"} <= set(names["placements"])
    assert {"greedy", "cost-benefit"} <= set(names["victims"])
    assert {"fio", "blkparse", "msr", "alibaba", "vscsi", "f2fs"} == set(names["import_formats"])
    text = must("list")
    for kind in ("workloads", "presets"):
        for entry in names[kind]:
            assert entry["name"] in text
            assert entry["what"] in text


@pytest.mark.parametrize("command", ["replay", "bench", "compare", "import", "list"])
def test_help_says_what_every_option_does(command: str) -> None:
    lines = must(command, "--help").splitlines()
    assert f"Usage: ssd-sim {command}" in "\n".join(lines)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("  -"):
            described = len(line) > 30 and line[29] == " " and line[30:].strip()
            assert described or following.startswith(" " * 30), line


def test_long_work_shows_how_far_it_is_only_on_a_terminal() -> None:
    words = ["bench", "uniform", "--footprint", "256M", "--writes", "12000000"]
    assert ssd_sim(*words).err == ""
    reader, writer = pty.openpty()
    with subprocess.Popen(
        [SSD_SIM, *words], stdout=subprocess.DEVNULL, stderr=writer, stdin=subprocess.DEVNULL
    ) as process:
        os.close(writer)
        seen = b""
        while True:
            try:
                piece = os.read(reader, 4096)
            except OSError:  # the other end is closed
                break
            seen += piece
        assert process.wait() == 0
    os.close(reader)
    assert b"nosep [" in seen
    assert b" %" in seen
    assert seen.endswith(b"\r\x1b[K")
