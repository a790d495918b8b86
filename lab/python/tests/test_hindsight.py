"""The lifetimes of other writes, and a second look at copies."""

from __future__ import annotations

import numpy as np
import pytest

from classifierd import _core
from classifierd.contexts import VStream
from classifierd.records import from_bytes, make
from classifierd.traces import telemetry
from streamfs_lab import _lab
from streamfs_lab.hindsight import others_lifetimes, others_tags
from streamfs_lab.policies import Workload
from streamfs_lab.replay import Device, compare, prefilled, waf_of, workload_of

LIVE = 32_768


@pytest.fixture(scope="module")
def zipf() -> Workload:
    data, full = _lab.generated("zipf", LIVE, 8 * LIVE, 1)
    assert full
    raw = from_bytes(data).copy()
    raw["vstream"] = 0
    return workload_of(prefilled(raw), [VStream(0)], 8)


def mean_of(log2_lives: list[float]) -> float:
    return float(np.mean(log2_lives)) if log2_lives else float("inf")


def test_a_mean_is_that_of_the_other_writes_of_its_kind_else_of_its_page() -> None:
    blocks = np.array([0, 9, 0, 9, 9, 9, 9, 7, 9, 9, 9, 0, 9, 0])
    records = telemetry(make(blocks, np.ones(len(blocks))))
    kinds = list(zip(blocks.tolist(), records["age"].tolist(), strict=True))
    lives = []
    for at, block in enumerate(blocks):
        later = np.flatnonzero(blocks[at + 1 :] == block)
        # A page alive at the end lives for four times the live pages, and at least for twice the
        # rest of the trace.
        life = later[0] + 1 if len(later) else max(4 * 3, 2 * (len(blocks) - at))
        lives.append(float(np.log2(life)))
    want, alone = [], 0
    for at, (kind, block) in enumerate(zip(kinds, blocks, strict=True)):
        of_kind = [life for i, life in enumerate(lives) if i != at and kinds[i] == kind]
        of_page = [life for i, life in enumerate(lives) if i != at and blocks[i] == block]
        alone += not of_kind
        want.append(mean_of(of_kind or of_page))
    assert 2 < alone < len(blocks) - 2
    got = others_lifetimes(Workload(records, [VStream(0)], 8, 3))
    assert got == pytest.approx(want)


def test_of_two_lifetimes_each_write_gets_the_other() -> None:
    records = telemetry(make([5, 6, 5], [1, 1, 1]))
    first, once, second = others_lifetimes(Workload(records, [VStream(0)], 8, 2))
    assert (first, second) == pytest.approx((np.log2(4 * 2), np.log2(2)))
    assert once == np.inf, "nothing is known of a page that is written once"


def test_a_page_written_once_is_placed_with_what_lives_longest() -> None:
    hot_and_cold = np.array([(5, 6 + i % 4) for i in range(40)]).reshape(-1)
    records = telemetry(make([*hot_and_cold, 99], np.ones(81)))
    by_shares, *by_edges = others_tags(Workload(records, [VStream(0)], 4, 6))
    assert by_shares[-1] == 3 > by_shares[40]
    assert all(tags[-1] == tags.max() for tags in by_edges)
    only = telemetry(make([1, 2, 3], [1, 1, 1]))
    assert [tags.tolist() for tags in others_tags(Workload(only, [VStream(0)], 4, 3))] == [[3] * 3]


def test_a_write_does_not_know_its_own_death() -> None:
    blocks = np.random.default_rng(1).integers(0, 512, 8192)
    records = telemetry(make(blocks, np.ones(len(blocks))))
    got = others_lifetimes(Workload(records, [VStream(0)], 8, 512))
    lives = _core.PageTrace(records).lifetimes()
    dead = (lives < len(lives)) & np.isfinite(got)
    assert np.corrcoef(got[dead], np.log2(lives[dead].astype(float)))[0, 1] < 0.05


def test_others_separate_but_do_not_know_the_moment(zipf: Workload) -> None:
    others = min(waf_of(zipf, "", Device(), tags) for tags in others_tags(zipf))
    assert waf_of(zipf, "oracle-host", Device()) < others < 0.6 * waf_of(zipf, "nosep", Device())


@pytest.mark.parametrize("pstreams", [1, 2, 8])
def test_others_need_no_more_pstreams_than_there_are(zipf: Workload, pstreams: int) -> None:
    few = Workload(zipf.records[: LIVE // 4], zipf.vstreams, pstreams, LIVE)
    assert all(tags.max() < pstreams for tags in others_tags(few))
    assert [len(tags) for tags in others_tags(Workload(zipf.records[:0], [], pstreams, 1))] == [0]


def test_a_device_that_looks_again_at_what_it_copies_copies_less(zipf: Workload) -> None:
    same = np.zeros(_core.PageTrace(zipf.records).writes, np.uint8)
    aged = waf_of(zipf, "", Device(), same, tagged="tags-aged")
    assert aged < 0.8 * waf_of(zipf, "nosep", Device())


def test_both_are_told_where_they_are_asked_for(zipf: Workload) -> None:
    few = Workload(zipf.records[: LIVE // 4], zipf.vstreams, 8, LIVE)
    names = ["oracle-leave-one-out", "learned-in-device"]
    assert list(compare(few, Device(), names).waf)[-2:] == names
