"""Replay of a trace through the learner, strictly causally, and what its tags would have saved.

The device is _core's greedy page-mapped FTL with host-only tags: garbage collection keeps a page
in its class. Every figure is at the stated effective spare (spare ÷ peak live pages).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.contexts import VStream
from classifierd.learner import Learner, Settings, epoch_pages_for
from classifierd.records import KIND_TRIM, Records
from classifierd.traces import telemetry

Tags = npt.NDArray[np.uint8]
_IMMORTAL = np.iinfo(np.uint64).max


@dataclass(frozen=True)
class Device:
    """The simulated device and the share of the writes that only warms it up."""

    spare: float = 0.07
    block_pages: int = 256
    measure_from: float = 0.3


@dataclass(frozen=True)
class Outcome:
    """WAF of each policy; the oracle is the best of several cuts of the true lifetimes."""

    waf: dict[str, float]
    pages_written: int
    peak_live: int

    def gap_closed(self, policy: str = "learned") -> float:
        """(nosep - policy) ÷ (nosep - oracle); 0 where there is no gap."""
        gap = self.waf["nosep"] - self.waf["oracle"]
        return (self.waf["nosep"] - self.waf[policy]) / gap if gap > 1e-3 else 0.0


def learned_tags(records: Records, learner: Learner) -> Tags:
    """The pStream of every page written: each by the table as it stood before the page."""
    out = []
    at = 0
    while at < len(records):
        taken = max(1, learner.feed(records[at:]))
        out.append(_core.tags(records[at : at + taken], learner.table_.reshape(-1)))
        at += taken
        if learner.life.epoch_due:
            learner.end_epoch()
    return np.concatenate(out) if out else np.zeros(0, np.uint8)


def oracle_tags(lifetimes: npt.NDArray[np.uint64], peak_live: int, k: int) -> dict[str, Tags]:
    """True lifetimes cut at log2 steps, at quantiles of volume and at parts of the live size."""
    finite = np.where(lifetimes == _IMMORTAL, 2.0**40, lifetimes.astype(np.float64))
    life = np.log2(np.maximum(finite, 1.0))
    mortal = life[lifetimes != _IMMORTAL]
    top = np.log2(max(peak_live, 2))
    steps = [7, 3, 1] if k <= 4 else [9, 7, 5, 4, 3, 2, 1]
    cuts = {
        "log2": top + 1 - np.arange(k - 1, 0, -1, dtype=np.float64),
        "threshold": top - np.array(steps[-(k - 1) :], dtype=np.float64),
        "quantile": np.quantile(life, np.arange(1, k) / k),
        "quantile-mortal": np.quantile(mortal, np.arange(1, k) / (k - 1 + 1e-9))
        if len(mortal)
        else np.zeros(0),
    }
    return {
        name: np.searchsorted(np.unique(cut), life, side="right").astype(np.uint8)
        for name, cut in cuts.items()
    }


def prefilled(records: Records) -> Records:
    """The same with its footprint written once, in order, before: as the field measures traces."""
    writes = records[records["kind"] != KIND_TRIM]
    if len(writes) == 0:
        return records
    first = np.unique(writes["block"] // 256)
    last = np.unique((writes["block"] + writes["pages"] - 1) // 256)
    chunk = np.union1d(first, last)
    fill = np.zeros(len(chunk), records.dtype)
    fill["block"], fill["pages"], fill["request_pages"] = chunk * 256, 256, 256
    return np.concatenate([fill, records])


def _learner_for(records: Records, peak_live: int, pstreams: int, settings: Settings) -> Learner:
    """Addresses may be sparse: the epoch goes by what is live, the map by the highest block."""
    if settings.epoch_pages == 0:
        settings = replace(settings, epoch_pages=epoch_pages_for(peak_live))
    end = records["block"] + records["pages"]
    return Learner(int(end.max(initial=1)), pstreams, settings)


def replay(
    raw: Records,
    vstreams: list[VStream],
    pstreams: int,
    settings: Settings | None = None,
    device: Device | None = None,
) -> tuple[Outcome, Tags, Learner]:
    """Run the whole loop over raw requests; returns the figures, the tags and the learner."""
    dev = device or Device()
    records = telemetry(raw)
    trace = _core.PageTrace(records)
    learner = _learner_for(records, trace.peak_live, pstreams, settings or Settings())
    learner.know(vstreams)
    tags = learned_tags(records, learner)

    def waf(of: Tags) -> float:
        return trace.waf(of, dev.spare, dev.block_pages, dev.measure_from)

    figures = {"nosep": waf(np.zeros(0, np.uint8)), "learned": waf(tags)}
    cuts = oracle_tags(trace.lifetimes(), trace.peak_live, pstreams)
    figures["oracle"] = min(waf(cut) for cut in cuts.values())
    return Outcome(figures, trace.writes, trace.peak_live), tags, learner
