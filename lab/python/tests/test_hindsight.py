"""Averages, and a second look at copies."""

from __future__ import annotations

import numpy as np
import pytest

from classifierd import _core
from classifierd.contexts import VStream
from classifierd.records import from_bytes, make
from classifierd.traces import telemetry
from streamfs_lab import _lab
from streamfs_lab.hindsight import mean_lifetimes, mean_tags
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


def test_a_mean_is_that_of_all_writes_of_its_kind() -> None:
    blocks = np.array([0, 9, 0, 9, 9, 9, 9, 9, 9, 9, 0, 9, 0])
    records = telemetry(make(blocks, np.ones(len(blocks))))
    lives: dict[tuple[int, int], list[float]] = {}
    kinds = list(zip(blocks.tolist(), records["age"].tolist(), strict=True))
    for at, kind in enumerate(kinds):
        later = np.flatnonzero(blocks[at + 1 :] == blocks[at])
        # A page alive at the end lives for four times the live pages, and at least for twice the
        # rest of the trace.
        life = later[0] + 1 if len(later) else max(4 * 2, 2 * (len(blocks) - at))
        lives.setdefault(kind, []).append(float(np.log2(life)))
    assert max(map(len, lives.values())) > 2
    got = mean_lifetimes(Workload(records, [VStream(0)], 8, 2))
    assert got == pytest.approx([np.mean(lives[kind]) for kind in kinds])


def test_means_separate_but_do_not_know_the_moment(zipf: Workload) -> None:
    means = min(waf_of(zipf, "", Device(), tags) for tags in mean_tags(zipf))
    assert waf_of(zipf, "oracle-host", Device()) < means < waf_of(zipf, "sepbit", Device())


@pytest.mark.parametrize("pstreams", [1, 2, 8])
def test_means_need_no_more_pstreams_than_there_are(zipf: Workload, pstreams: int) -> None:
    few = Workload(zipf.records[: LIVE // 4], zipf.vstreams, pstreams, LIVE)
    assert all(tags.max() < pstreams for tags in mean_tags(few))
    assert [len(tags) for tags in mean_tags(Workload(zipf.records[:0], [], pstreams, 1))] == [0]


def test_a_device_that_looks_again_at_what_it_copies_copies_less(zipf: Workload) -> None:
    same = np.zeros(_core.PageTrace(zipf.records).writes, np.uint8)
    aged = waf_of(zipf, "", Device(), same, tagged="tags-aged")
    assert aged < 0.8 * waf_of(zipf, "nosep", Device())


def test_both_are_told_where_they_are_asked_for(zipf: Workload) -> None:
    few = Workload(zipf.records[: LIVE // 4], zipf.vstreams, 8, LIVE)
    names = ["oracle-mean", "learned-in-device"]
    assert list(compare(few, Device(), names).waf)[-2:] == names
