"""Offline replay: causal, and worth it where it should be."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from classifierd import _core
from classifierd.command_line import EXIT_NO_DEVICE, EXIT_USAGE
from classifierd.contest import Contest
from classifierd.contest import Device as Shadowed
from classifierd.contexts import VStream
from classifierd.learner import Settings
from classifierd.records import Records, from_bytes, make
from classifierd.traces import TraceError, read, read_vstreams, telemetry
from streamfs_lab import _lab
from streamfs_lab.cli import main
from streamfs_lab.policies import Tags
from streamfs_lab.replay import (
    POLICIES,
    Device,
    Outcome,
    compare,
    prefilled,
    requests_forgotten,
    workload_of,
)
from streamfs_lab.tagged import write_tagged
from streamfs_lab.workloads import WORKLOADS

PAGES, LIVE = 600_000, 65_536


def replay(
    raw: Records, vstreams: list[VStream], settings: Settings | None = None, *more: str
) -> Outcome:
    return compare(workload_of(raw, vstreams, 8, settings), Device(), ["nosep", *more])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_most_of_the_gap_closes_on_a_mix_full_of_log_tails(seed: int) -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](PAGES, seed, LIVE)
    outcome = replay(raw, vstreams)
    assert outcome.waf["nosep"] > outcome.waf["oracle"] + 1
    assert outcome.gap_closed() >= 0.6, f"seed {seed}: {outcome.waf}"


def test_the_place_in_the_request_alone_tells_log_tails() -> None:
    raw, _ = WORKLOADS["logs-only"](PAGES, 1, LIVE)
    with_end = replay(raw, [VStream(0)], None, "life-table")
    blind = Settings(levels=("overwrite", "vstream+overwrite"))
    without = replay(raw, [VStream(0)], blind, "life-table")
    assert with_end.gap_closed("life-table") >= 0.6
    assert without.gap_closed("life-table") <= 0.3


def test_the_age_of_what_is_overwritten_alone_tells_often_written_pages() -> None:
    made, full = _lab.generated("zipf", LIVE // 2, PAGES // 2)
    raw = from_bytes(made)
    raw["vstream"] = 0
    assert full
    with_age = replay(prefilled(raw), [VStream(0)], None, "life-table")
    blind = Settings(levels=("overwrite", "vstream+overwrite+end"))
    without = replay(prefilled(raw), [VStream(0)], blind, "life-table")
    assert with_age.gap_closed("life-table") >= 0.35
    assert without.gap_closed("life-table") <= 0.2


def test_without_requests_the_same_pages_are_written_and_their_places_are_gone() -> None:
    raw, _ = WORKLOADS["logs-only"](PAGES // 4, 1, LIVE // 4)
    raw["file_place"] = 7
    blind = requests_forgotten(raw)
    assert set(blind["request_pages"]) == set(blind["pages"]) == {1}
    assert set(blind["file_place"]) == {0}
    one, other = (_core.PageTrace(telemetry(each)) for each in (raw, blind))
    assert (one.writes, one.peak_live) == (other.writes, other.peak_live)
    np.testing.assert_array_equal(one.lifetimes(), other.lifetimes())
    waf = []
    for each in (raw, blind):
        outcome = replay(each, [VStream(0)], None, "life-table")
        waf += [outcome.waf["nosep"], outcome.waf["life-table"]]
    assert waf[0] == waf[2]
    assert waf[1] < waf[0] - 0.7, f"the places tell log tails: {waf}"
    assert waf[3] > waf[0] - 0.4, f"and nothing else does: {waf}"


def test_a_trim_stays_whole_where_requests_are_forgotten() -> None:
    raw = make([8, 3, 8], [4, 1, 4], trim=[False, False, True])
    blind = requests_forgotten(raw)
    assert blind["block"].tolist() == [8, 9, 10, 11, 3, 8]
    assert blind["pages"].tolist() == [1, 1, 1, 1, 1, 4]


def test_every_policy_is_held_against_the_same_device() -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](PAGES // 4, 1, LIVE // 4)
    outcome = compare(workload_of(raw, vstreams, 8), Device())
    assert tuple(outcome.waf) == POLICIES
    assert min(outcome.waf, key=outcome.waf.__getitem__) in {"oracle", "oracle-host"}
    assert all(outcome.waf[name] < outcome.waf["nosep"] for name in ("sepbit", "warcip"))


def test_sequential_rewrites_are_never_made_worse() -> None:
    raw, vstreams = WORKLOADS["sequential"](PAGES, 1, LIVE)
    outcome = replay(raw, vstreams)
    assert outcome.waf["learned"] <= outcome.waf["nosep"] + 0.01


def test_a_cold_table_speaks_within_a_quarter_of_a_gibibyte() -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](PAGES, 1, LIVE)
    records = from_bytes(_core.as_telemetry(raw))
    tags = by_life_table(records, vstreams)
    shapes = _core.tags(
        records,
        np.zeros(_core.VSTREAMS, np.uint16),
        (np.arange(_core.SHAPES) % 36).astype(np.uint8),
    )
    writes = records[records["kind"] != 2]
    log = np.repeat(writes["vstream"], writes["pages"]) == 1
    tail = np.isin(shapes % 6, [0, 1, 3])
    soon = slice(65_536, 100_000)  # After a quarter of a GiB.
    tails, rest = tags[soon][(log & tail)[soon]], tags[soon][(log & ~tail)[soon]]
    between = np.quantile(tails, 0.95)
    assert (rest > between).mean() > 0.95


def by_life_table(part: Records, vstreams: list[VStream]) -> Tags:
    contest = Contest(2 * LIVE, Shadowed(LIVE, 8), candidates=("life-table",))
    contest.know(vstreams)
    return np.concatenate([tags["life-table"] for tags, _, _ in contest.run(part)])


def test_lifetimes_and_kinds_are_those_of_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    rows = ["W,0,8192", "R,0,4096", "W,4096,8192", "T,0,4096", "W,100,200"]
    with gzip.open(path, "wt") as file:
        file.write("ts_us,op,offset_bytes,length_bytes\n")
        file.writelines(f"{i},{row}\n" for i, row in enumerate(rows))
    raw, vstreams = read(path)
    assert [v.number for v in vstreams] == [0]
    records = from_bytes(_core.as_telemetry(raw))
    assert records["kind"].tolist() == [0, 1, 0, 2, 0]
    assert records["age"].tolist() == [0, 4, 0, 0, 0], "two pages ago, of three that are live"
    assert records["request_offset"].tolist() == [0, 0, 1, 0, 0]
    immortal = np.iinfo(np.uint64).max
    lifetimes = _core.PageTrace(records).lifetimes().tolist()
    assert lifetimes == [4, 1, immortal, immortal, immortal]


def test_parts_of_one_request_know_their_place_in_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = ["1,W,0,8192,5,0,7,0", "2,W,40960,4096,5,0,7,1", "3,T,0,4096,5,0,7,0"]
    rows += ["4,W,81920,4096,6,0,8,0", "5,W,8192,4096,5,0,7,0"]
    header = "ts_us,op,offset_bytes,length_bytes,vstream,context,request,pstream"
    path.write_text("\n".join([header, *rows]) + "\n")
    records, vstreams = read(path)
    writes = records[records["kind"] != 2]
    assert writes["request_pages"].tolist() == [4, 4, 1, 4]
    assert writes["request_offset"].tolist() == [0, 2, 0, 3]
    assert writes["vstream"].tolist() == [5, 5, 6, 5]
    assert [v.number for v in vstreams] == [5, 6]


def test_a_binary_trace_reads_as_its_csv_twin(tmp_path: Path) -> None:
    path, twin = tmp_path / "t", tmp_path / "t.csv"
    parts = [(1, 4096, 8192, 0, 9, 3, 0, b"W"), (2, 4096, 4096, 0, 10, 3, 0, b"T")]
    rows = b"".join(struct.pack("<QQQIIHHc3x", *part) for part in parts)
    path.write_bytes(gzip.compress(b"SFSTRC01" + struct.pack("<II", 1, 40) + rows))
    twin.write_text(
        "ts_us,op,offset_bytes,length_bytes,vstream,request\n"
        "1,W,4096,8192,3,9\n2,T,4096,4096,3,10\n"
    )
    assert (read(path)[0] == read(twin)[0]).all()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TraceError):
        read(path)


def test_a_tagged_trace_says_the_same_writes_with_their_streams(tmp_path: Path) -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](20_000, 1, 8192)
    tags = replay(raw, vstreams).tags
    path = tmp_path / "t.csv.gz"
    write_tagged(path, telemetry(raw), tags)
    again, _ = read(path)
    with gzip.open(path, "rt") as file:
        table = [line.rstrip().split(",") for line in file][1:]
    streams = [int(row[7]) for row in table if row[1] == "W" for _ in range(int(row[3]) // 4096)]
    assert streams == tags.tolist()
    before, after = _core.PageTrace(telemetry(raw)), _core.PageTrace(telemetry(again))
    assert (before.lifetimes() == after.lifetimes()).all()


def test_a_row_without_a_request_number_is_a_request_and_a_long_one_stays_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"1,W,0,4096\n2,W,4096,{(1 << 30) + 1}\n3,T,100,8192\n4,T,1,4096\n")
    records, _ = read(path)
    assert records["pages"].tolist() == [1, 65536, 65536, 65536, 65536, 1, 1]
    assert records["block"].tolist() == [0, *range(1, 5 * 65536, 65536), 1]
    assert records["request_pages"].tolist() == [1, *[(1 << 18) + 1] * 5, 1]
    assert records["request_offset"].tolist() == [0, *range(0, 5 * 65536, 65536), 0]


def test_replay_prints_json_and_writes_a_tag_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tags"
    size = ["--pages", "50000", "--live", "8192"]
    assert main(["replay", "logs-only", *size, "--streams", "4", "--json", "--out", str(out)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert tuple(printed["policies"]) == POLICIES
    assert sum(printed["served"].values()) > 1
    tags = np.fromfile(out, np.uint8)
    assert len(tags) >= 45_000
    assert tags.max() < 4


def test_without_a_gap_none_is_said_to_be_closed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["replay", "sequential", "--pages", "20000", "--live", "8192", "--policies", "sepgc"]
    assert main(words) == 0
    assert capsys.readouterr().out.count("gap closed –") == 5
    assert main([*words, "--json"]) == 0
    policies = json.loads(capsys.readouterr().out)["policies"]
    assert {each["gap_closed"] for each in policies.values()} == {None}


def test_a_recorded_trace_knows_what_its_vstreams_are(tmp_path: Path) -> None:
    """By what streamctl streams --json said."""
    path = tmp_path / "vstreams.json"
    path.write_text('{"streams": [{"vstream": 16384, "source": "context", "comm": "git"}]}')
    assert read_vstreams(path) == [VStream(16384, "context", comm="git")]


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"streams": []}', '{"streams": [{"vstream": 70000}]}']
)
def test_vstreams_that_are_none_are_refused_with_a_sentence(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Never an exception's trace."""
    trace, path = tmp_path / "trace.csv", tmp_path / "vstreams.json"
    trace.write_text("ts_us,op,offset_bytes,length_bytes\n0,W,0,4096\n")
    path.write_text(text)
    assert main(["replay", str(trace), "--vstreams", str(path)]) == EXIT_NO_DEVICE
    assert str(path) in caplog.text


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("streamfs-lab 0.")


def test_usage_errors_have_their_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "logs-only", "--pages", "9000", "--policies", "none"]) == EXIT_USAGE
    for arguments in (
        ["fly"],
        ["replay"],
        ["replay", "x", "--streams", "999"],
        ["plot", "x", "-z"],
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == EXIT_USAGE
    assert "usage" in capsys.readouterr().err
