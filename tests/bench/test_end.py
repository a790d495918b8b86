"""bench/end: what is lost without a page's place in its request, and what is said without a gap."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.captures import Capture
from bench.suites import end
from bench.suites.placement import Replays
from bench.table import Row

SHARE = "w: END's share of what learned saves"


def pair(seen: float, blind: float, nosep: float = 2.0) -> end.Pair:
    def replays(waf: float) -> Replays:
        oracles = {"oracle": [1.2], "oracle-host": [1.0]}
        return Replays("w", {"nosep": [nosep], **{each: [waf] for each in end.LEARNED}, **oracles})

    return end.Pair(replays(seen), replays(blind))


def figures(rows: Iterator[Row]) -> dict[str, Row]:
    return {each.name: each for each in rows}


def test_the_share_is_what_blinding_loses_of_what_was_saved() -> None:
    assert pair(seen=1.2, blind=1.6).share("learned") == pytest.approx(0.5)
    found = figures(end.rows_of("w", pair(seen=1.2, blind=1.6)))
    assert found["w: gap closed by learned, END known"].value == pytest.approx(0.8)
    assert found["w: gap closed by learned, END blinded"].value == pytest.approx(0.4)
    said = found[SHARE]
    assert said.value == pytest.approx(0.5)
    assert said.unit == "END holds"


def test_a_cue_that_misleads_does_not_hold() -> None:
    said = figures(end.rows_of("w", pair(seen=1.5, blind=1.4)))[
        "w: END's share of what learned saves"
    ]
    assert said.value == pytest.approx(-0.2)
    assert said.unit == "END does not hold"


@pytest.mark.parametrize("worse", [pair(2.1, 1.5), pair(1.01, 1.01, nosep=1.02)])
def test_where_nothing_is_saved_there_is_no_share(worse: end.Pair) -> None:
    assert figures(end.rows_of("w", worse))[SHARE].value is None


def test_each_recording_is_replayed_with_requests_and_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []

    @contextmanager
    def capture(name: str, seed: int) -> Iterator[Capture]:
        yield Capture(Path(f"{name}.{seed}"), Path("vstreams"))

    def run(*words: str) -> dict[str, Any]:
        asked.append(words)
        waf = 1.8 if "--no-requests" in words else 1.5
        return {"policies": {policy: {"waf": waf} for policy in end.POLICIES}}

    monkeypatch.setattr(end, "capture", capture)
    monkeypatch.setattr(end, "run", run)
    found = end.recorded("etcd", (1, 2))
    ways = [("--no-hints",), ("--vstreams", "vstreams")]
    pairs = [(*way, *blind) for way in ways for blind in ((), ("--no-requests",))]
    assert asked == [(f"etcd.{seed}", *each) for seed in (1, 2) for each in pairs]
    for each in found.values():
        assert each.seen.waf["learned"] == [1.5, 1.5]
        assert each.blind.waf["learned"] == [1.8, 1.8]


def test_a_server_that_is_not_installed_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end, "why_not", lambda _: "not installed: etcd")
    assert list(end.of_work("etcd", (1,))) == [Row("etcd", None, "not installed: etcd")]
