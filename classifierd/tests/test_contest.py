"""The loop of learning and choosing, as replay and the daemon run it."""

from __future__ import annotations

import numpy as np
import pytest

from classifierd import _core
from classifierd.contest import CANDIDATES, Contest, Device, pstreams_of
from classifierd.contexts import VStream
from classifierd.learner import Settings
from classifierd.records import KIND_TRIM, Records, from_bytes
from classifierd.traces import telemetry
from streamfs_lab import _lab
from streamfs_lab.policies import learned
from streamfs_lab.replay import Device as Simulated
from streamfs_lab.replay import prefilled, waf_of, workload_of
from streamfs_lab.workloads import WORKLOADS

LIVE = 16_384


def bare(name: str, pages: int, live: int = LIVE) -> Records:
    """One of ssd-sim's workloads as requests of which nobody said anything."""
    data, starts_full = _lab.generated(name, live, pages, 1)
    raw = from_bytes(data).copy()
    raw["vstream"] = 0
    return prefilled(raw) if starts_full else raw


def test_the_longest_lived_lie_in_the_last_pstream_however_few_classes() -> None:
    assert pstreams_of(8, 8).tolist() == list(range(8))
    assert pstreams_of(4, 8).tolist() == [1, 3, 5, 7]
    assert pstreams_of(3, 8).tolist() == [1, 4, 7]
    assert pstreams_of(1, 8).tolist() == [7]
    for classes in (0, 9):
        with pytest.raises(ValueError, match="classes"):
            pstreams_of(classes, 8)


def test_nosep_serves_in_the_last_pstream_until_something_is_copied() -> None:
    fill = telemetry(bare("fio4", LIVE))
    contest = Contest(2 * LIVE, Device(2 * LIVE, 8))
    for tags, serving, _ in contest.run(fill[: len(fill) // 2]):
        assert serving == "nosep"
        assert (tags["nosep"] == 7).all()


def test_what_a_device_that_is_not_full_will_cost_is_known_before() -> None:
    """Half of it lives, so nothing is copied; when all does, who is to serve is decided."""
    served = [
        serving
        for _, serving, _ in Contest(2 * LIVE, Device(2 * LIVE, 8)).run(
            telemetry(bare("fio4", 5 * LIVE))
        )
    ]
    assert (served[0], served[-1] == "nosep") == ("nosep", False)


def test_the_life_table_begins_where_contexts_tell_writes_apart() -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](LIVE, 1, 4 * LIVE)  # too little to copy anything
    for known, begins in ((vstreams, "life-table"), ([VStream(0)], "nosep")):
        served = learned(workload_of(raw, known, 8)).served
        assert {name for name, epochs in served.items() if epochs} == {begins}


@pytest.mark.parametrize("name", ["rocksdb-levels", "sequential", "fio4"])
def test_what_is_learned_is_never_worse_than_no_separation(name: str) -> None:
    # Going over has a price, and some of these decide late: it must have the time to be repaid.
    pages = 10 * LIVE
    raw = WORKLOADS[name](pages, 1, LIVE)[0] if name in WORKLOADS else bare(name, pages)
    workload = workload_of(raw, [VStream(0)], 8)
    found = learned(workload)
    served = found.served
    assert sum(served.values()) > 8
    device = Simulated()
    ours = waf_of(workload, "tags", device, found.tags["learned"], found.releases["learned"])
    none = waf_of(workload, "nosep", device)
    assert ours <= none + 0.01
    if name == "fio4":
        assert served["nosep"] < sum(served.values()) / 2
        assert ours < 0.7 * none, "and here it is worth it"


def test_everything_said_depends_on_the_past_only() -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](60_000, 1, LIVE // 2)
    records = telemetry(raw)

    def run(part: Records) -> dict[str, np.ndarray]:
        contest = Contest(1 << 18, Device(LIVE // 2, 8), Settings(epoch_pages=2048))
        contest.know(vstreams)
        out: dict[str, list[np.ndarray]] = {name: [] for name in (*CANDIDATES, "learned")}
        for tags, serving, _ in contest.run(part):
            for name, own in {**tags, "learned": tags[serving]}.items():
                out[name].append(own)
        return {name: np.concatenate(own) for name, own in out.items()}

    whole = run(records)
    assert len(set(whole["learned"].tolist())) >= 4
    for cut in np.linspace(1, len(records) - 1, 5).astype(np.int64):
        past, future = records[:cut], records[cut:].copy()
        future["vstream"] = 5 - future["vstream"] % 5
        future["request_pages"] += 1
        pages = int(past["pages"][past["kind"] != KIND_TRIM].sum())
        for name, tags in run(np.concatenate([past, future])).items():
            assert (tags[:pages] == whole[name][:pages]).all(), f"{name}, cut at {cut}"


def test_a_candidate_alone_serves_from_the_first_page_on() -> None:
    raw, vstreams = WORKLOADS["logs-only"](40_000, 1, LIVE // 2)
    contest = Contest(1 << 18, Device(LIVE // 2, 8), candidates=("life-table",))
    contest.know(vstreams)
    for tags, serving, _ in contest.run(telemetry(raw)):
        assert serving == "life-table"
        assert list(tags) == ["life-table"]
    assert len(np.unique(contest.tables_["life-table"])) > 2


def test_models_of_fewer_classes_use_fewer_pstreams() -> None:
    raw, vstreams = WORKLOADS["logs-only"](40_000, 1, LIVE // 2)
    contest = Contest(1 << 18, Device(LIVE // 2, 8))
    contest.know(vstreams)
    seen: dict[str, set[int]] = {name: set() for name in CANDIDATES}
    for tags, _, _ in contest.run(telemetry(raw)):
        for name, own in tags.items():
            seen[name] |= set(own.tolist())
    for name, classes in (("logistic", 8), ("logistic-few", 4), ("logistic-fewer", 2)):
        assert seen[name] == set(pstreams_of(classes, 8).tolist()), name
        assert contest.used_[name] == seen[name], name


def test_tables_filled_by_rows_say_what_they_would_if_made_whole() -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](60_000, 1, LIVE // 2)
    contest = Contest(1 << 18, Device(LIVE // 2, 8), candidates=("life-table", "life-table-few"))
    contest.know(vstreams)
    for _ in contest.run(telemetry(raw)):
        pass
    assert contest.learner.edges_ is not None
    classes = 1 + int(np.isfinite(contest.learner.edges_).sum())
    table = np.minimum(contest.learner.table_, classes - 1)
    assert len(np.unique(table)) > 2
    whole = {
        "life-table": pstreams_of(classes, 8)[table],
        "life-table-few": pstreams_of((classes + 1) // 2, 8)[table // 2],
    }
    for name, said in whole.items():
        shapes = said[:, : _core.SHAPES]
        assert (contest.tables_[name][:, : _core.SHAPES] == shapes).all(), name
        assert contest.used_[name] == frozenset(np.unique(shapes).tolist()), name


@pytest.mark.parametrize("pstreams", [1, 2, 200])
def test_any_number_of_pstreams_will_do(pstreams: int) -> None:
    raw, vstreams = WORKLOADS["log-tail-mix"](30_000, 1, LIVE // 2)
    contest = Contest(1 << 18, Device(LIVE // 2, pstreams))
    contest.know(vstreams)
    for tags, _, _ in contest.run(telemetry(raw)):
        assert all(own.max() < pstreams for own in tags.values())


def test_an_epoch_of_nothing_says_nothing() -> None:
    contest = Contest(1 << 18, Device(LIVE, 8))
    assert contest.feed(telemetry(bare("fio4", 64))[:0]) == 0
    verdict = contest.end_epoch()
    assert not verdict.switched
    assert set(verdict.copies.values()) == {0.0}


@pytest.mark.parametrize("candidates", [(), ("nosep", "nonsense")])
def test_who_is_no_candidate_is_refused(candidates: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="candidates are"):
        Contest(1 << 18, Device(LIVE, 8), candidates=candidates)
    with pytest.raises(ValueError, match="candidate"):
        Contest(1 << 18, Device(LIVE, 8), serving="nonsense")
