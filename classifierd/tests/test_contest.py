"""The loop of learning and choosing, as replay and the daemon run it."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from classifierd import _core
from classifierd.contest import CANDIDATES, TABLES, Contest, Device, pstreams_of
from classifierd.learner import Settings
from classifierd.records import KIND_TRIM, RECORD, Records, make
from classifierd.traces import telemetry
from writes import logs, logs_and_files

LIVE = 16_384


def test_the_longest_lived_lie_in_the_last_pstream_however_few_classes() -> None:
    assert pstreams_of(8, 8).tolist() == list(range(8))
    assert pstreams_of(4, 8).tolist() == [1, 3, 5, 7]
    assert pstreams_of(3, 8).tolist() == [1, 4, 7]
    assert pstreams_of(1, 8).tolist() == [7]
    for classes in (0, 9):
        with pytest.raises(ValueError, match="classes"):
            pstreams_of(classes, 8)


def test_everything_said_depends_on_the_past_only() -> None:
    raw, vstreams = logs_and_files(60_000, 1, LIVE // 2)
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
    raw, vstreams = logs(40_000, 1, LIVE // 2)
    contest = Contest(1 << 18, Device(LIVE // 2, 8), candidates=("life-table",))
    contest.know(vstreams)
    for tags, serving, _ in contest.run(telemetry(raw)):
        assert serving == "life-table"
        assert list(tags) == ["life-table"]
    assert len(np.unique(contest.tables_["life-table"])) > 2


def test_models_of_fewer_classes_use_fewer_pstreams() -> None:
    raw, vstreams = logs(40_000, 1, LIVE // 2)
    contest = Contest(1 << 18, Device(LIVE // 2, 8))
    contest.know(vstreams)
    seen: dict[str, set[int]] = {name: set() for name in CANDIDATES}
    for tags, _, _ in contest.run(telemetry(raw)):
        for name, own in tags.items():
            seen[name] |= set(own.tolist())
    for name, classes in (("logistic", 8), ("logistic-few", 4), ("logistic-fewer", 2)):
        assert seen[name] == set(pstreams_of(classes, 8).tolist()), name
        assert contest.used_[name] == seen[name], name


def test_tables_spread_the_classes_over_the_pstreams() -> None:
    raw, vstreams = logs_and_files(60_000, 1, LIVE // 2)
    contest = Contest(1 << 18, Device(LIVE // 2, 8), candidates=TABLES)
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
        "nosep": np.full_like(table, 7),
    }
    for name, said in whole.items():
        assert (contest.tables_[name] == said).all(), name
        assert contest.used_[name] == frozenset(np.unique(said).tolist()), name
    by_chunk = contest.tables_["chunk-kmeans"].reshape(len(table), _core.CHUNK_CLASSES, -1)
    assert (by_chunk == by_chunk[:1, :, :1]).all(), "the class of the chunk alone decides"
    classes_used = len(contest.chunks.centres_)
    assert len(np.unique(by_chunk[0, 1 : classes_used + 1])) > 2
    hottest, unknown = 1 + int(contest.chunks.centres_[:, 0].argmax()), 0
    assert by_chunk[0, hottest, 0] == by_chunk.min() < by_chunk[0, unknown, 0] == 7


@pytest.mark.parametrize("pstreams", [1, 2, 200])
def test_any_number_of_pstreams_will_do(pstreams: int) -> None:
    raw, vstreams = logs_and_files(30_000, 1, LIVE // 2)
    contest = Contest(1 << 18, Device(LIVE // 2, pstreams))
    contest.know(vstreams)
    for tags, _, _ in contest.run(telemetry(raw)):
        assert all(own.max() < pstreams for own in tags.values())


def test_an_epoch_of_nothing_says_nothing() -> None:
    contest = Contest(1 << 18, Device(LIVE, 8))
    assert contest.feed(np.zeros(0, RECORD)) == 0
    verdict = contest.end_epoch()
    assert not verdict.switched
    assert set(verdict.copies.values()) == {0.0}


@pytest.mark.parametrize("candidates", [(), ("nosep", "nonsense")])
def test_who_is_no_candidate_is_refused(candidates: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="candidates are"):
        Contest(1 << 18, Device(LIVE, 8), candidates=candidates)
    with pytest.raises(ValueError, match="candidate"):
        Contest(1 << 18, Device(LIVE, 8), serving="nonsense")


def test_the_logistic_model_learns_from_the_place_in_the_file() -> None:
    """Writes of two kinds go anywhere; those far into a file live longer."""
    rng = np.random.default_rng(1)
    free = rng.permutation(LIVE).tolist()
    deaths: list[tuple[int, int]] = []  # clock, block
    rows: list[tuple[int, bool, int]] = []
    for clock in range(12 * LIVE):
        while deaths and deaths[0][0] <= clock:
            block = heapq.heappop(deaths)[1]
            rows.append((block, True, 0))
            free.append(block)
        late = bool(rng.random() < 0.5)
        block = free.pop(int(rng.integers(len(free))))
        rows.append((block, False, 30 if late else 1))
        heapq.heappush(deaths, (clock + (LIVE // 2 if late else LIVE // 64), block))
    blocks, trims, places = (np.array(column) for column in zip(*rows, strict=True))
    records = make(blocks, np.ones(len(blocks), np.int64), trim=trims)
    records["file_place"] = places
    predictor = _core.Predictor(2 * LIVE, LIVE, [2])
    written = records[records["kind"] != KIND_TRIM]
    told = []
    for part in np.array_split(records, 96):
        told.append(predictor.feed(part)[0])
        predictor.end_epoch()
    classes = np.concatenate(told)[-LIVE:]
    far = written["file_place"][-LIVE:] == 30
    assert classes[far].mean() - classes[~far].mean() > 0.8
