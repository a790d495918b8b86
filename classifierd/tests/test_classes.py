"""Cutting lifetimes into classes, and keeping the classes what they were."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from classifierd import _core
from classifierd.classes import (
    Floats,
    LifetimeKMeans,
    assign,
    quantile_edges,
    settle,
    spread_edges,
    spread_within,
    squash,
    unsquash,
)
from classifierd.clusters import ChunkClusters
from classifierd.records import KIND_OVERWRITE, KIND_TRIM, make, make_overwrites

Cut = Callable[[Floats, Floats, int], Floats]


@pytest.mark.parametrize("cut", [quantile_edges, spread_edges])
def test_every_class_is_used_while_there_are_lifetimes_to_tell_apart(cut: Cut) -> None:
    rng = np.random.default_rng(4)
    values = rng.uniform(2, 20, 500)
    volumes = rng.exponential(1, 500)
    volumes[:2] = 400  # Two heavy ones: plain quantiles would leave classes empty.
    for k in (1, 2, 4, 8, 16):
        edges = cut(values, volumes, k)
        assert len(edges) == k - 1
        assert (np.diff(edges) > 0).all()
        assert len(np.unique(assign(values, edges))) == k


@pytest.mark.parametrize("cut", [quantile_edges, spread_edges])
def test_fewer_lifetimes_than_classes_leave_the_rest_empty(cut: Cut) -> None:
    edges = cut(np.array([3.0, 3.01, 17.0]), np.ones(3), 8)
    assert np.isfinite(edges).sum() == 1
    assert assign(np.array([3.0, 17.0]), edges).tolist() == [0, 1]
    assert np.isinf(cut(np.zeros(0), np.zeros(0), 4)).all()
    assert np.isinf(cut(np.ones(5), np.zeros(5), 4)).all()


@pytest.mark.parametrize("cut", [quantile_edges, spread_edges])
def test_what_is_written_no_more_has_no_say(cut: Cut) -> None:
    values = np.arange(2.0, 20.0)
    volumes = np.logspace(-300, 5, len(values))
    edges = cut(values, volumes, 8)
    assert np.isfinite(edges).sum() == 0
    assert len(edges) == 7


def test_no_other_cut_leaves_less_spread() -> None:
    rng = np.random.default_rng(8)
    values, volumes = rng.uniform(2, 20, 40), rng.exponential(1, 40)
    left = spread_within(values, volumes, spread_edges(values, volumes, 4))
    for _ in range(2000):
        other = np.sort(rng.uniform(2, 20, 3))
        assert left <= spread_within(values, volumes, other) + 0.01


def test_short_lifetimes_are_drawn_together_and_long_ones_are_not() -> None:
    values = np.array([1.0, 4.0, 17.0, 20.0])
    bent = squash(values, 2.0**18)
    assert bent[1] - bent[0] < 0.01
    assert bent[3] - bent[2] == pytest.approx(3, abs=0.05)
    np.testing.assert_allclose(unsquash(bent, 2.0**18), values, atol=1e-6)
    assert np.isinf(unsquash(np.array([np.inf]), 2.0**18))


def test_a_value_near_an_edge_stays_in_its_class() -> None:
    edges = np.array([5.0, 10.0])
    before = assign(np.array([4.9, 5.1, 12.0]), edges)
    after = assign(np.array([5.1, 4.9, 4.0]), edges, before, margin_log2=0.2)
    assert after.tolist() == [0, 1, 0]


def test_edges_move_only_when_it_is_worth_it() -> None:
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(m, 0.2, 200) for m in (4, 9, 14, 18)])
    volumes = np.ones(len(values))
    old = quantile_edges(values, volumes, 4)
    for _ in range(50):
        drifted = values + rng.normal(0, 0.1, len(values))
        assert settle(old, quantile_edges(drifted, volumes, 4), drifted, volumes) is old
    moved = np.where(values < 6, values + 7, values)
    fresh = quantile_edges(moved, volumes, 4)
    assert settle(old, fresh, moved, volumes) is fresh


def test_lifetime_classes_keep_their_identity_while_lifetimes_drift() -> None:
    rng = np.random.default_rng(6)
    centres = np.array([3.0, 8.0, 13.0, 18.0])
    model = LifetimeKMeans(4)
    for epoch in range(40):
        now = centres + 0.03 * epoch
        values = np.concatenate([rng.normal(c, 0.3, 100) for c in now])
        model.fit(values, rng.exponential(1, len(values)))
        np.testing.assert_allclose(model.centres_, now, atol=0.4)


def test_an_empty_lifetime_class_is_given_to_the_widest() -> None:
    model = LifetimeKMeans(3).fit(np.array([2.0, 10.0, 18.0]), np.ones(3))
    np.testing.assert_allclose(model.centres_, [2, 10, 18])
    model.fit(np.array([2.0, 9.0, 12.0, 12.1]), np.ones(4))
    assert len(model.centres_) == 3
    assert len(np.unique(assign(np.array([2.0, 9.0, 12.0]), model.edges_))) == 3


def test_chunk_classes_keep_their_identity_over_epochs() -> None:
    rng = np.random.default_rng(7)
    clusters = ChunkClusters(k=3)
    frequency = np.repeat([50.0, 1.0, 0.01], 200)
    recency = np.repeat([100.0, 10_000.0, 1_000_000.0], 200)
    first = None
    for _ in range(30):
        noise = np.exp(rng.normal(0, 0.3, 600))
        clusters.fit(chunks(relative=frequency * noise, recency_pages=recency * noise[::-1]))
        first = clusters.labels_.copy() if first is None else first
        assert (clusters.labels_ == first).mean() > 0.99
    assert [c.chunks for c in clusters.classes()] == [200, 200, 200]
    relative = [c.features["relative"] for c in clusters.classes()]
    assert relative == sorted(relative, reverse=True)


def test_chunks_are_grouped_again_once_as_many_pages_were_written() -> None:
    clusters, grouped = ChunkClusters(1e6, 2), []
    for number in range(6):
        overwritten = 256 * np.arange(4 + 4 * number)
        clusters.feed(make_overwrites(overwritten, 1, age=_core.AGE_OLD))
        clusters.fit_when_due()
        grouped.append(len(clusters.labels_))
    # The pages written are 4, 12, 24, 40, 60 and 84.
    assert grouped == [4, 8, 12, 16, 20, 24]
    for part in range(4):
        clusters.feed(make_overwrites(256 * np.arange(10 * part, 10 * part + 10), 1, age=5))
        clusters.fit_when_due()
        grouped.append(len(clusters.labels_))
    assert grouped[6:] == [24, 24, 30, 30], "24 chunks were known at 84 pages"


def test_the_classes_of_the_map_have_ranks() -> None:
    rng, clusters = np.random.default_rng(3), ChunkClusters(1e6, 2)
    clusters.fit_when_due()
    assert len(clusters.map_) == 0
    assert clusters.ranks().tolist() == [0] * _core.CHUNK_CLASSES
    # Chunk 1 is overwritten seldom, chunk 3 often, the others never.
    for hot in (9, 9, 9, 0, 9):
        pages = 256 * np.array([3] * hot + [1]) + rng.integers(0, 256, hot + 1)
        clusters.feed(make_overwrites(pages, 1, age=_core.AGE_OLD))
    clusters.fit_when_due()
    assert len(clusters.map_) == 4
    assert clusters.map_[[0, 2]].tolist() == [0, 0]
    ranks = clusters.ranks()[clusters.map_]
    assert ranks.tolist() == [2, 1, 2, 0], "chunks of which nothing is known come last"
    again = ChunkClusters(1e6, 2)
    again.restore(clusters.map_, clusters.centres_)
    assert (again.ranks()[again.map_] == ranks).all()


@pytest.mark.parametrize("wrong", ["class", "centres", "nan", "shape"])
def test_a_map_of_chunks_that_cannot_be_is_not_restored(wrong: str) -> None:
    chunks_of, centres = np.array([0, 1, 2], np.uint8), np.ones((2, 5), np.float32)
    if wrong == "class":
        chunks_of[0] = 3
    elif wrong == "centres":
        centres = np.ones((3, 5), np.float32)
    elif wrong == "nan":
        centres[0, 0] = np.nan
    else:
        centres = centres[:, :4]
    with pytest.raises(ValueError, match="chunks"):
        ChunkClusters(1e6, 2).restore(chunks_of, centres)


def chunks(**known: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """A row each; what is not said is the same for all."""
    out = np.ones((len(next(iter(known.values()))), len(_core.CHUNK_FEATURES)), np.float32)
    for name, values in known.items():
        out[:, _core.CHUNK_FEATURES.index(name)] = values
    return out


@pytest.mark.parametrize("name", _core.CHUNK_FEATURES)
def test_every_feature_alone_can_tell_chunks_apart(name: str) -> None:
    """Whatever its scale is, and though it is known of nine in ten only."""
    values = np.tile([0.001, 0.002, 0.9, 0.901], 100)
    values[::10] = np.nan
    clusters = ChunkClusters(k=2).fit(chunks(**{name: values}))
    low, high = clusters.labels_[values < 0.1], clusters.labels_[values > 0.1]
    assert len(np.unique(low)) == len(np.unique(high)) == 1
    assert low[0] != high[0]


@pytest.mark.parametrize("points", [[], [1.0], [1.0, 1.0, 1.0], [np.nan, np.inf, 0.0, -1.0]])
def test_odd_chunks_are_grouped_without_a_murmur(points: list[float]) -> None:
    values = np.array(points, np.float64)
    odd = np.repeat(values[:, None], len(_core.CHUNK_FEATURES), axis=1)
    clusters = ChunkClusters(k=4).fit(odd.astype(np.float32))
    assert len(clusters.labels_) == len(points)
    assert np.isfinite(clusters.centres_).all()


def test_what_a_chunk_counter_says_of_chunks_that_are_known() -> None:
    """A chunk is overwritten every 1,000 pages, another unevenly, one is trimmed, one once."""
    counter = _core.ChunkCounter(half_life_pages=1e9)
    steady = [(at, make(0, 4)) for at in range(0, 400_000, 1000)]
    uneven = [(at, make(256, 4)) for at in np.cumsum(np.tile([100, 3200], 100)).tolist()]
    gone = [(at, make(512, 1, trim=True)) for at in range(0, 400_000, 4000)]
    once = [(200_000, make(768, 1))]
    clock = 0
    for at, record in sorted(steady + uneven + gone + once, key=lambda each: each[0]):
        if at > clock:  # New data makes time pass and nothing else.
            counter.feed(make(1 << 20, at - clock))
        if record["kind"][0] != KIND_TRIM:
            record["kind"], record["age"] = KIND_OVERWRITE, _core.AGE_OLD
            clock = max(clock, at) + int(record["pages"][0])
        counter.feed(record)
    numbers, rows = counter.view()
    assert numbers.tolist() == [0, 1, 2, 3]
    relative, recency, interval, spread, trims = rows.T
    total = 4 * 400 + 4 * 200 + 1
    assert relative == pytest.approx(4 * np.array([1600, 800, 0, 1]) / total, rel=1e-3)
    assert recency[[0, 1, 3]] == pytest.approx([0, 69_000, 199_000], rel=0.01)
    assert interval[:3] == pytest.approx([1000, np.sqrt(100 * 3200), 4000], rel=0.2)
    assert spread[[0, 2]] == pytest.approx([0, 0], abs=0.1)
    assert spread[1] == pytest.approx(2.5, abs=0.2)  # log2 of 32, halved
    assert np.isnan([interval[3], spread[3]]).all()
    assert trims.tolist() == [0, 0, 1, 0]
    counter.feed(make(0, 1 << 17, trim=True))  # A device emptied: no word on chunks.
    assert len(counter) == 4
