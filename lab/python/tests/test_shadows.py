"""The daemon's shadow devices copy what the simulator's device would."""

from __future__ import annotations

import numpy as np
import pytest

from classifierd import _core
from classifierd.records import KIND_TRIM, Records, from_bytes
from classifierd.traces import telemetry
from streamfs_lab import _lab
from streamfs_lab.replay import Device, prefilled, waf_of, workload_of
from streamfs_lab.workloads import WORKLOADS

LIVE = 65_536


def hot_and_cold(pages: int, seed: int) -> tuple[Records, list[np.ndarray]]:
    """Records of two programs, and three taggings: by program, all in one stream, random."""
    raw, _ = WORKLOADS["hot-cold"](pages, seed, LIVE)
    records = telemetry(raw)
    apart = np.repeat(records["vstream"] - 1, records["pages"]).astype(np.uint8)
    strewn = np.random.default_rng(seed).integers(0, 2, len(apart)).astype(np.uint8)
    return records, [apart, np.zeros(len(apart), np.uint8), strewn]


def whole_spare(live_pages: int, block_pages: int = 256) -> float:
    """The simulator's spare at 7 %, its reserve included, as a share of the live pages."""
    return 0.07 + _core.RESERVE_BLOCKS * block_pages / live_pages


@pytest.mark.parametrize(
    ("gc_mode", "victim"),
    [("same", "greedy"), ("own", "greedy"), ("shared", "greedy"), ("own", "cost-benefit")],
)
def test_a_shadow_of_all_chunks_copies_what_the_device_would(gc_mode: str, victim: str) -> None:
    records, tags = hot_and_cold(400_000, 1)
    workload = workload_of(records, [], 2)
    live = workload.live_pages
    shadow = _core.Shadow(live, 3, 2, whole_spare(live), gc_mode=gc_mode, victim=victim)
    shadow.feed(records, np.concatenate(tags))
    assert shadow.one_in == 1
    assert shadow.refused == 0
    shadowed = 1 + np.array(shadow.copied) / shadow.written
    device = Device(warmup=0.0, gc_mode=gc_mode, victim=victim)
    real = [waf_of(workload, "tags", device, tag) for tag in tags]
    assert shadowed == pytest.approx(real, rel=0.005)


@pytest.mark.parametrize(
    ("name", "live", "one_in"),
    [
        ("hot-cold", LIVE, 2),
        ("hot-cold", 2 * LIVE, 2),
        ("log-tail-mix", LIVE, 2),
        ("log-tail-mix", 2 * LIVE, 3),
        ("whole-files", 2 * LIVE, 3),
        ("zipf", LIVE, 2),
        ("shifting", 2 * LIVE, 2),
        ("fio4", 2 * LIVE, 2),
    ],
)
def test_a_sampled_shadow_copies_what_the_device_would(name: str, live: int, one_in: int) -> None:
    """Two taggings: one stream, and by vStream or by the age of the overwritten data."""
    raw = (
        WORKLOADS[name](5 * live, 1, live)[0]
        if name in WORKLOADS
        else prefilled(from_bytes(_lab.generated(name, live, 4 * live, 1)[0]))
    )
    records = telemetry(raw)
    by = records["vstream"] % 4 * 2 if name in WORKLOADS else np.minimum(records["age"], 7)
    pages = np.where(records["kind"] == KIND_TRIM, 0, records["pages"]).astype(np.int64)
    tags = [np.repeat(each, pages).astype(np.uint8) for each in (by * 0, by)]
    workload = workload_of(raw, [], 8)
    peak = workload.live_pages
    shadow = _core.Shadow(peak, 2, 8, whole_spare(peak), 256, peak // one_in)
    shadow.feed(records, np.concatenate(tags))
    assert shadow.one_in == one_in
    assert shadow.refused == 0
    shadowed = 1 + np.array(shadow.copied) / shadow.written
    real = [waf_of(workload, "tags", Device(warmup=0.0), tag) for tag in tags]
    assert real[0] > 1.3
    assert shadowed == pytest.approx(real, rel=0.1)


def by_vstream(name: str, pages: int, live: int) -> Records:
    """A workload, each vStream in the pStream of its number."""
    raw, _ = WORKLOADS[name](pages, 1, live)
    records = from_bytes(_core.as_telemetry(raw)).copy()
    records["pstream"] = records["vstream"] % 4
    return records


def counts(
    records: Records, capacity: int, one_in: int, parts: int, spare: float = 0.07, fill: int = 0
) -> np.ndarray:
    shadow = _core.SavingsShadow(capacity, 4, spare, 256, "own", one_in, parts)
    shadow.fill(fill)
    shadow.feed(records)
    told = shadow.counts().astype(float).mean(axis=0) * shadow.stride
    out: np.ndarray = 1 + told[[1, 2]] / shadow.written
    return out


def fitting(records: Records) -> int:
    return int((records["block"] + records["pages"]).max())


def test_a_device_wholly_followed_counts_as_the_simulator_does() -> None:
    records = by_vstream("log-tail-mix", 600_000, LIVE)
    pages = np.where(records["kind"] == KIND_TRIM, 0, records["pages"]).astype(np.int64)
    tags = np.repeat(records["pstream"], pages).astype(np.uint8)
    peak, capacity = _core.PageTrace(records).peak_live, fitting(records)
    # The simulator's device holds the peak of live pages, 7 % spare and twelve blocks.
    spare = (1.07 * peak + 12 * 256) / capacity - 1
    off, placed = counts(records, capacity, 1, 1, spare)
    want = _lab.waf(records, "tags", 4, tags, warmup=0.0, gc_mode="own")
    alone = _lab.waf(records, "tags", 1, tags * 0, warmup=0.0, gc_mode="own")
    assert alone > want > 1.01
    np.testing.assert_allclose([off, placed], [alone, want], rtol=0.01)


@pytest.mark.parametrize(("one_in", "parts"), [(2, 4), (4, 4)])
def test_a_sample_says_what_the_whole_device_does(one_in: int, parts: int) -> None:
    data, full = _lab.generated("hotcold", 1 << 18, 1_200_000, 1)
    assert full
    records = from_bytes(data).copy()
    records["pstream"] = records["vstream"] % 4
    capacity = int(fitting(records) * 1.2)
    ways = ((1, 1), (one_in, parts))
    whole, sample = (counts(records, capacity, *how, fill=1 << 18) for how in ways)
    assert whole[0] > 1.4
    np.testing.assert_allclose(sample, whole, rtol=0.1)
