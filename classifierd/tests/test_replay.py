"""Offline replay: causal, and worth it where it should be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from classifierd import _core
from classifierd.cli import EXIT_NO_DEVICE, EXIT_USAGE, main
from classifierd.contexts import VStream
from classifierd.learner import Learner, Settings
from classifierd.records import TraceError, from_bytes, read_trace
from classifierd.replay import learned_tags, replay
from classifierd.workloads import WORKLOADS

PAGES, LIVE = 600_000, 65_536


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_most_of_the_gap_closes_on_a_mix_full_of_log_tails(seed: int) -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](PAGES, seed, LIVE)
    outcome, _, _ = replay(raw, vstreams, 8)
    assert outcome.waf["nosep"] > outcome.waf["oracle"] + 1
    assert outcome.gap_closed() >= 0.6, f"seed {seed}: {outcome.waf}"


def test_the_place_in_the_request_alone_tells_log_tails() -> None:
    raw, _ = WORKLOADS["logs-only"](PAGES, 1, LIVE)
    with_end, _, _ = replay(raw, [VStream(0)], 8)
    blind = Settings(levels=("overwrite", "vstream+overwrite"))
    without, _, _ = replay(raw, [VStream(0)], 8, blind)
    assert with_end.gap_closed() >= 0.6
    assert without.gap_closed() <= 0.3


def test_sequential_rewrites_are_never_made_worse() -> None:
    raw, vstreams = WORKLOADS["sequential"](PAGES, 1, LIVE)
    outcome, _, _ = replay(raw, vstreams, 8)
    assert outcome.waf["learned"] <= outcome.waf["nosep"] + 0.01


def test_a_cold_table_speaks_within_a_quarter_of_a_gibibyte() -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](PAGES, 1, LIVE)
    records = from_bytes(_core.as_telemetry(raw))
    learner = Learner(2 * LIVE, 8)
    learner.know(vstreams)
    tags = learned_tags(records, learner)
    shapes = _core.tags(records, (np.arange(1 << 20) % 16).astype(np.uint8))
    writes = records[records["kind"] != 2]
    log = np.repeat(writes["vstream"], writes["pages"]) == 1
    tail = np.isin(shapes % 6, [0, 1, 3])
    soon = slice(65_536, 100_000)  # After a quarter of a GiB.
    tails, rest = tags[soon][(log & tail)[soon]], tags[soon][(log & ~tail)[soon]]
    between = np.quantile(tails, 0.95)
    assert (rest > between).mean() > 0.95


def test_tags_depend_on_the_past_only() -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](PAGES, 1, LIVE)
    records = from_bytes(_core.as_telemetry(raw))
    half = len(records) // 2

    def tags_of(part: np.ndarray) -> np.ndarray:
        learner = Learner(1 << 18, 8)
        learner.know(vstreams)
        return learned_tags(part, learner)

    first = tags_of(records[:half])
    assert (tags_of(records)[: len(first)] == first).all()


def test_lifetimes_and_kinds_are_those_of_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    rows = ["W,0,8192", "R,0,4096", "W,4096,8192", "T,0,4096", "W,100,200"]
    with gzip.open(path, "wt") as file:
        file.write("ts_us,op,offset_bytes,length_bytes\n")
        file.writelines(f"{i},{row}\n" for i, row in enumerate(rows))
    raw, vstreams = read_trace(path)
    assert [v.number for v in vstreams] == [0]
    records = from_bytes(_core.as_telemetry(raw))
    assert records["kind"].tolist() == [0, 1, 0, 2, 0]
    assert records["request_offset"].tolist() == [0, 0, 1, 0, 0]
    immortal = np.iinfo(np.uint64).max
    lifetimes = _core.PageTrace(records).lifetimes().tolist()
    assert lifetimes == [4, 1, immortal, immortal, immortal]


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "op,offset_bytes,length_bytes\nW,x,1\n", "op,offset_bytes\nW,1,2\n"]
)
def test_what_is_no_trace_is_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(TraceError, match=r"t\.csv"):
        read_trace(path)
    assert main(["replay", str(path)]) == EXIT_NO_DEVICE


def test_replay_prints_json_and_writes_a_tag_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tags"
    size = ["--pages", "50000", "--live", "8192"]
    assert main(["replay", "logs-only", *size, "--streams", "4", "--json", "--out", str(out)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed["policies"]) == {"nosep", "learned", "oracle"}
    tags = np.fromfile(out, np.uint8)
    assert len(tags) >= 45_000
    assert tags.max() < 4


def test_usage_errors_have_their_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["fly"], ["replay"], ["replay", "x", "--streams", "999"], ["run", "/", "-z"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == EXIT_USAGE
    assert "usage" in capsys.readouterr().err
