"""The life table and its back-off: what they promise about lifetimes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest

from classifierd import _core
from classifierd.contexts import ContextIds, VStream
from classifierd.learner import Learner, Settings
from classifierd.records import RECORD, Records, from_bytes, make, make_overwrites

NEW_SINGLE = _core.shape_of(1, 0, 0)


def pages_with_lives(lives: npt.NDArray[np.int64], vstream: int = 0) -> Records:
    """Writes of one page, each trimmed once that many more were written, unless past the end."""
    born = np.arange(len(lives))
    dead = born + lives
    seen = dead < len(lives)
    writes = make(born, 1, vstream=vstream)
    writes["clock_pages"] = born
    trims = make(born[seen], 1, trim=True, vstream=vstream)
    trims["clock_pages"] = dead[seen]
    # A death comes before the write of the same clock.
    both = np.concatenate([trims, writes])
    order = np.lexsort([both["kind"] != 2, both["clock_pages"]])
    return both[order]


def learn(learner: Learner, records: Records) -> None:
    at = 0
    while at < len(records):
        at += learner.feed(records[at:])
        if learner.life.epoch_due:
            learner.end_epoch()


def hazards(learner: Learner) -> npt.NDArray[np.float64]:
    _, _, deaths, entered = learner.life.cells()
    known = entered.sum(axis=0) > 1000
    out = np.full(_core.AGE_BINS, np.nan)
    out[known] = deaths.sum(axis=0)[known] / entered.sum(axis=0)[known]
    return out


@pytest.mark.parametrize("seed", range(3))
def test_survival_of_exponential_lives_is_unbiased_though_most_are_still_alive(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mean = 200_000.0  # Twice the time watched: two thirds are still alive at the end.
    lives = np.ceil(rng.exponential(mean, 100_000)).astype(np.int64)
    learner = Learner(1 << 18, 8, Settings(epoch_pages=8192, decay=1.0))
    learn(learner, pages_with_lives(lives))
    learner.end_epoch()
    age = 2.0 ** np.arange(_core.AGE_BINS)
    truth = 1 - np.exp(-age / mean)
    found = hazards(learner)
    assert np.isfinite(found[6:16]).all()
    np.testing.assert_allclose(found[10:16], truth[10:16], rtol=0.1, err_msg=f"seed {seed}")
    # The mean of the deaths seen alone would say far less.
    seen = lives[np.arange(len(lives)) + lives < len(lives)]
    assert np.log2(seen).mean() < np.log2(mean) - 2
    expected = np.log2(mean) - 0.83  # E[log2] of an exponential life
    assert learner._backoff.predict(np.zeros(1, np.uint16))[0][0, NEW_SINGLE] == pytest.approx(
        expected, abs=1.0
    )


def test_lives_of_constant_length_fall_into_their_bin() -> None:
    learner = Learner(1 << 18, 8, Settings(epoch_pages=4096))
    learn(learner, pages_with_lives(np.full(60_000, 300)))
    learner.end_epoch()
    mean, evidence = learner._backoff.predict(np.zeros(1, np.uint16))
    assert mean[0, NEW_SINGLE] == pytest.approx(8.5, abs=0.05)  # 300 is in [256, 512)
    assert evidence[0, NEW_SINGLE] > 1000


def test_a_context_without_history_gets_what_its_relatives_know() -> None:
    learner = Learner(1 << 18, 8, Settings(epoch_pages=4096))
    log = VStream(1, "context", "", "postgres", "#", "pg_wal")
    other = VStream(2, "context", "", "rocksdb", "sst", "store")
    sibling = VStream(3, "context", "", "postgres", "#", "pg_xact")
    learner.know([log, other, sibling])
    short = pages_with_lives(np.full(40_000, 100), vstream=1)
    long = pages_with_lives(np.full(40_000, 30_000), vstream=2)
    long["block"] += 100_000
    both = np.concatenate([short, long])
    learn(learner, both[np.argsort(both["clock_pages"], kind="stable")])
    learner.end_epoch()
    mean, evidence = learner._backoff.predict(np.array([1, 2, 3, 9], np.uint16))
    at = mean[:, NEW_SINGLE]
    assert at[2] == pytest.approx(at[0], abs=1.0), "the sibling follows its program"
    assert at[0] < at[3] < at[1], "a stranger gets the average"
    assert evidence[2, NEW_SINGLE] == 0
    table = learner.table_[learner.row_of_, NEW_SINGLE]
    assert table[3] == table[1] < table[2]


# Unrecorded uses of the number in between may have moved the generation to any of these values.
@pytest.mark.parametrize("generation", [201, (200 + 2 * 64) % 256, (200 + 2 * 127) % 256])
def test_a_number_that_is_given_again_starts_without_a_past(generation: int) -> None:
    learner = Learner(1 << 18, 8, Settings(epoch_pages=4096))
    first = pages_with_lives(np.full(60_000, 300), vstream=5)
    first["generation"] = 200
    learn(learner, first)
    learner.end_epoch()
    assert learner._backoff.predict(np.array([5], np.uint16))[1][0, NEW_SINGLE] > 1000
    # Another context's pages under the number: what it overwrites was not its own.
    again = make(np.arange(100), 1, vstream=5)
    again["clock_pages"] = 60_000 + np.arange(100)
    again["generation"] = generation
    late = make([200], 1, vstream=5)
    late["clock_pages"], late["generation"] = 60_100, 200
    learn(learner, np.concatenate([again, late]))
    learner.end_epoch()
    cells, volume, deaths, _ = learner.life.cells()
    mine = cells // _core.SHAPES == 5
    assert volume[mine].sum() == pytest.approx(100, rel=0.5)
    assert deaths[mine].sum() == 0
    assert volume[cells // _core.SHAPES == 0].sum() > 0  # the late record


def test_pages_that_die_together_are_one_witness() -> None:
    """A file of 256 pages trimmed whole is one event, pages overwritten one by one are many."""
    learner = Learner(1 << 18, 8, Settings(epoch_pages=4096, decay=1.0))
    files, pages = 40, 256
    at = 0
    for number in range(files):
        both = np.concatenate([make(number % 2 * pages, pages, trim=True, vstream=1),
                               make(number % 2 * pages, pages, vstream=1)])  # fmt: skip
        both["clock_pages"] = at
        learn(learner, both)
        at += pages
    singles = make_overwrites(np.tile(np.arange(1000, 1100), 40), 1, age=1)
    singles["vstream"], singles["clock_pages"] = 2, at + np.arange(len(singles))
    learn(learner, singles)
    learner.end_epoch()
    cells, *_ = learner.life.cells()
    events = learner.life.events()
    by_vstream = [events[cells // _core.SHAPES == v].max() for v in (1, 2)]
    assert by_vstream[0] == files - 2
    assert by_vstream[1] == len(singles) - 100
    margins = learner._margins(np.array([1, 2], np.uint16))
    least, most = learner.settings.margin_log2, learner.settings.margin_most_log2
    assert least < margins[0].min() < most, "few tell it, so it may stray"
    assert margins[1].min() == least


def test_little_evidence_moves_the_estimate_little() -> None:
    backoff = _core.Backoff([_core.FEATURES["overwrite"], _core.FEATURES["vstream"]], kappa=512.0)
    life = _core.LifeTable(1 << 18)
    deaths, entered = np.zeros((2, _core.AGE_BINS)), np.zeros((2, _core.AGE_BINS))
    entered[0, :17], deaths[0, 16] = 1e6, 1e6
    entered[1, :5], deaths[1, 4] = 512, 512
    cells = np.array([1, 2], np.uint32) * _core.SHAPES
    assert life.restore(cells, np.ones(2), deaths, entered)
    backoff.fit(life, ContextIds().rows([]))
    mean, _ = backoff.predict(np.array([1, 2], np.uint16))
    assert mean[0, 0] == pytest.approx(16.5, abs=0.1)
    assert mean[1, 0] == pytest.approx((16.5 + 4.5) / 2, abs=0.2), "512 pages weigh half"


def test_a_class_of_chunks_that_no_page_was_in_has_no_evidence() -> None:
    backoff = _core.Backoff([_core.FEATURES["vstream"] | _core.FEATURES["chunk"]])
    life = _core.LifeTable(1 << 18)
    ones = np.ones((1, _core.AGE_BINS))
    assert life.restore(np.array([_core.SHAPES], np.uint32), np.ones(1), ones, ones)
    backoff.fit(life, ContextIds().rows([]))
    mean, evidence = (each.reshape(9, -1) for each in backoff.predict(np.array([1], np.uint16)))
    assert (mean == mean[0]).all()
    assert evidence[0].max() > 0
    assert (evidence[1:] == 0).all()


@pytest.mark.parametrize(("vstreams", "told_apart"), [(1, True), (2, False)])
def test_classes_of_chunks_tell_writes_apart_while_one_vstream_writes(
    vstreams: int, *, told_apart: bool
) -> None:
    shapes = _core.SHAPES // _core.CHUNK_CLASSES
    chunks = [1 * shapes, 2 * shapes]  # the same shape in a chunk of class 1, and of class 2
    cells = np.array([v * _core.SHAPES + each for v in range(vstreams) for each in chunks])
    deaths = np.zeros((len(cells), _core.AGE_BINS))
    deaths[0::2, 4] = deaths[1::2, 14] = 10_000.0
    entered = np.cumsum(deaths[:, ::-1], axis=1)[:, ::-1].copy()
    learner = Learner(1 << 18, 8)
    assert learner.life.restore(cells.astype(np.uint32), np.full(len(cells), 1e4), deaths, entered)
    learner.refresh()
    mean, _ = learner.expected(0)
    short, long = mean[chunks]
    assert (long - short > 8) == told_apart
    assert (long == short) != told_apart


def test_a_vstream_without_a_row_is_placed_as_one_that_nobody_met() -> None:
    learner = Learner(1 << 22, 8)
    numbers = np.arange(_core.TABLE_ROWS + 50)
    records = make(np.tile(4 * numbers, 2), 1, vstream=np.tile(numbers, 2))
    records["clock_pages"] = np.arange(len(records))
    learn(learner, records)
    learner.end_epoch()
    assert len(learner.table_) == _core.TABLE_ROWS
    without = numbers[learner.row_of_[numbers] == 0]
    assert len(without) == 51
    stranger, _ = learner._backoff.predict(np.array([_core.VSTREAMS - 1], np.uint16))
    expected = np.clip(2 * stranger[0], 0, 126) + 1
    assert (learner.lifetimes_[0] == expected.astype(np.uint8)).all()


def test_garbage_records_are_counted_and_change_nothing() -> None:
    rng = np.random.default_rng(7)
    garbage = from_bytes(rng.integers(0, 256, 200_000 * RECORD.itemsize, dtype=np.uint8))
    life = _core.LifeTable(1 << 18)
    taken = 0
    while taken < len(garbage):
        taken += life.feed(garbage[taken:])
        life.end_epoch()
    assert life.rejected == len(garbage)
    assert len(life.cells()[0]) == 0


def test_a_clock_that_jumps_makes_no_absurd_ages() -> None:
    life = _core.LifeTable(1 << 18, epoch_pages=1024)
    for clock in (0, 1 << 50, 5, 1 << 63):
        records = make_overwrites(np.arange(600) % 200, 1, age=_core.AGE_OLD)
        records["clock_pages"] = np.uint64(clock) + np.arange(600, dtype=np.uint64)
        taken = 0
        while taken < len(records):
            taken += life.feed(records[taken:])
            if life.epoch_due:
                life.end_epoch()
    life.end_epoch()
    assert life.clock_jumps >= 3
    assert life.clock_pages == 2400
    deaths = life.cells()[2].sum(axis=0)
    assert deaths[12:].sum() == 0


def test_tables_that_cannot_be_are_not_restored() -> None:
    life = _core.LifeTable(1 << 18)
    one = np.ones((1, _core.AGE_BINS))
    cell, volume = np.array([_core.SHAPES], np.uint32), np.ones(1)
    assert not life.restore(cell, volume, one * np.nan, one)
    assert not life.restore(cell, volume, one, -one)
    beyond = np.array([_core.VSTREAMS * _core.SHAPES], np.uint32)
    assert not life.restore(beyond, volume, one, one)
    assert not life.restore(cell, volume, one[:, :5], one)
    assert len(life.cells()[0]) == 0
    assert life.restore(cell, volume, one, one)


def random_overwrites(pages: int, seed: int) -> Records:
    """Two programs on regions of their own, one of which is rewritten sixteen times as often."""
    rng = np.random.default_rng(seed)
    vstream = np.where(rng.random(pages) < 0.8, 1, 2)
    block = np.where(vstream == 1, rng.integers(0, 1 << 16, pages), 0)
    block = np.where(vstream == 2, (1 << 16) + rng.integers(0, 1 << 18, pages), block)
    return from_bytes(_core.as_telemetry(make(block, 1, vstream=vstream)))


@pytest.mark.parametrize("trims", [False, True])
def test_a_sample_of_groups_tells_the_lifetimes_that_all_of_them_tell(trims: bool) -> None:
    records = random_overwrites(900_000, 5)
    if trims:  # Once in a while much of what is cold goes at a time.
        much = make(np.arange(6) * 30_000 + (1 << 16), 30_000, trim=True, vstream=2)
        raw = np.insert(records, np.linspace(4e5, 9e5, 6).astype(np.int64), much)
        records = from_bytes(_core.as_telemetry(raw))
    learners = [Learner(1 << 20, 8, Settings(epoch_pages=16_384)) for _ in range(2)]
    sampled, whole = learners
    sampled.life = _core.LifeTable(1 << 20, 16_384, sampled.settings.decay, groups_max=4096)
    for learner in learners:
        taken = 0
        while taken < len(records):
            taken += learner.life.feed(records[taken:])
            learner.life.end_epoch()
        learner.refresh()
    assert (whole.life.one_in, sampled.life.one_in) == (1, 8)
    for said in ("live_pages", "deaths"):
        assert getattr(sampled.life, said) == pytest.approx(getattr(whole.life, said), rel=0.06)
    for vstream in (1, 2):
        by_all, by_some = (learner.expected(vstream)[0][NEW_SINGLE + 6] for learner in learners)
        assert 2.0**by_some == pytest.approx(2.0**by_all, rel=0.06)
    volumes = [dict(zip(*learner.life.cells()[:2], strict=True)) for learner in learners]
    assert volumes[0] == volumes[1], "volumes are counted, not sampled"


def test_what_is_alive_is_counted_though_only_some_of_it_is_followed() -> None:
    """In no more than 45 MiB: of a process of its own, since others' memory would be used again."""
    program = """
import pathlib
from classifierd import _core
from classifierd.records import make, make_overwrites

def resident_mib():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

life = _core.LifeTable(1 << 34)
before = resident_mib()
for first in range(0, 1 << 24, 1 << 16):  # 64 GiB, four times what can be followed whole.
    life.feed(make(first, 1 << 16))
    life.end_epoch()
print(life.one_in, resident_mib() - before, life.live_pages)
life.feed(make(0, 1 << 24, trim=True))
print(life.live_pages, life.deaths)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    one_in, mib, alive, left, deaths = map(float, done.stdout.split())
    assert one_in >= 4
    assert 20 < mib <= 45
    assert alive == deaths == pytest.approx(1 << 24, rel=0.05)
    assert left == 0
