"""scikit-learn's estimators as policies."""

from __future__ import annotations

import numpy as np
import pytest

from classifierd.contexts import VStream
from classifierd.records import KIND_TRIM, Records
from streamfs_lab import _lab
from streamfs_lab.policies import Tags, Workload
from streamfs_lab.replay import Device, compare, waf_of, workload_of
from streamfs_lab.rivals import RIVALS, _Past, rival
from streamfs_lab.workloads import WORKLOADS

LIVE = 2048


def hot_and_cold(seed: int) -> Workload:
    raw, vstreams = WORKLOADS["hot-cold"](6 * LIVE, seed, LIVE)
    return workload_of(raw, vstreams, 4)


def written(records: Records) -> int:
    return int(records["pages"][records["kind"] != KIND_TRIM].sum())


def test_a_view_is_what_was_known_of_each_page_before_it_was_written() -> None:
    workload = hot_and_cold(1)
    rows = _lab.Views(workload.end, LIVE).feed(workload.records)
    assert rows.shape == (written(workload.records), len(_lab.VIEW_FIELDS))
    field = dict(zip(_lab.VIEW_FIELDS, rows.T, strict=True))
    records = workload.records[workload.records["kind"] != KIND_TRIM]
    pages = records["pages"].astype(np.int64)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(pages) - pages, pages)
    page = np.repeat(records["block"].astype(np.int64), pages) + place
    assert (field["mib"] == page / 256).all()
    assert (field["vstream"] == np.repeat(records["vstream"], pages)).all()
    first = np.zeros(len(page), np.bool_)
    first[np.unique(page, return_index=True)[1]] = True
    assert (field["alive"] == ~first).all()
    assert (field["age"] == 0)[first].all()
    assert (field["age"] > 0)[~first].all()


QUICK = ("sk-kmeans",)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.long]) for n in RIVALS]
)
def test_a_rival_separates_and_knows_the_past_only(name: str) -> None:
    workload = hot_and_cold(2)
    tags = rival(name)(workload)
    assert waf_of(workload, name, Device(block_pages=64), tags) < waf_of(
        workload, "nosep", Device(block_pages=64)
    )
    cut = len(workload.records) * 2 // 3
    future = workload.records[cut:].copy()
    future["block"] = future["block"][::-1]
    future["vstream"] = 3 - future["vstream"]
    past = workload.records[:cut]
    other = Workload(np.concatenate([past, future]), workload.vstreams, 4, workload.live_pages)
    assert (rival(name)(other)[: written(past)] == tags[: written(past)]).all()


def test_of_what_dies_later_no_more_is_known_than_that_it_lives() -> None:
    rng = np.random.default_rng(4)
    past, lifetimes = _Past(LIVE), np.ceil(rng.exponential(LIVE, 20_000)).astype(np.uint64)
    known = 0
    for now in range(1000, 20_000, 1000):
        past.add(np.zeros((1000, 1), np.float32))
        born = np.arange(len(lifetimes), dtype=np.uint64)
        dies_later = born + lifetimes > np.uint64(now)
        as_of_now = np.where(dies_later, np.iinfo(np.uint64).max, lifetimes)
        rows, lives = past.known(lifetimes)
        assert (lives == past.known(as_of_now)[1]).all()
        assert len(rows) == len(lives)
        known += len(lives)
    assert known > 10_000


def test_rivals_compete_where_they_are_asked_for() -> None:
    raw, _ = WORKLOADS["logs-only"](8 * LIVE, 1, LIVE)
    workload = workload_of(raw, [VStream(0)], 4)
    outcome = compare(workload, Device(), ["sk-kmeans"])
    assert tuple(outcome.waf) == ("nosep", "learned", "oracle", "oracle-host", "sk-kmeans")


def test_nothing_to_fit_on_is_no_trouble() -> None:
    raw, vstreams = WORKLOADS["sequential"](LIVE, 1, LIVE)
    workload = workload_of(raw[:3], vstreams, 4)
    for name in RIVALS:
        tags: Tags = rival(name)(workload)
        assert tags.tolist() == [0] * written(workload.records)
