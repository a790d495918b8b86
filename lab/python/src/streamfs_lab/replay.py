"""Replays a trace under every placement, strictly causally, and measures the WAF of each.

The device is the simulator's page-mapped FTL (ssd-sim's). Tags are the host's, except for policies
that learn from copies. Every figure is at the stated effective spare (spare ÷ peak live pages), GC
mode and victim policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from classifierd import _core
from classifierd.contexts import VStream
from classifierd.learner import Settings
from classifierd.progress import Progress
from classifierd.records import KIND_TRIM, Records, pages_one_by_one
from classifierd.traces import telemetry
from streamfs_lab import _lab
from streamfs_lab.hindsight import others_tags
from streamfs_lab.policies import (
    FULL_HISTORY,
    HOST_ONLY,
    IN_DEVICE,
    TAGGED,
    Releases,
    Tags,
    Workload,
    learned,
)
from streamfs_lab.rivals import RIVALS, rival

ORACLES = ("oracle", "oracle-host")
POLICIES = ("nosep", *IN_DEVICE, *HOST_ONLY, *TAGGED, "learned", *ORACLES)
# Policies that run only if named. RIVALS are slow: each is fitted anew every epoch. OTHERS knows
# the lifetimes of all writes but the one that it places (hindsight.py). REVIEWED is "learned" in a
# device that chooses the stream of each copy anew.
OTHERS, REVIEWED = "oracle-leave-one-out", "learned-in-device"
ON_DEMAND = (*RIVALS, FULL_HISTORY, OTHERS, REVIEWED)
_ALWAYS = ("nosep", "learned", *ORACLES)


@dataclass(frozen=True)
class Device:
    """The simulated device and the share of the writes that only warms it up."""

    spare: float = 0.07
    block_pages: int = 256
    warmup: float = 0.3
    victim: str = "greedy"
    gc_mode: str = "same"  # where the device puts copies of tagged pages: same, own, shared


@dataclass(frozen=True)
class Outcome:
    """WAF of each policy. The gap is measured to the best run of either oracle, of any edges."""

    waf: dict[str, float]
    pages_written: int
    peak_live: int
    tags: Tags  # of what is learned
    served: dict[str, int]  # epochs that each candidate served

    @property
    def has_gap(self) -> bool:
        """Whether the best oracle copies less than nosep does, by more than rounding."""
        return self._gap > 1e-3

    @property
    def _gap(self) -> float:
        return self.waf["nosep"] - min(self.waf[name] for name in ORACLES)

    def gap_closed(self, policy: str = "learned") -> float:
        """(nosep - policy) ÷ (nosep - oracle); 0 where there is no gap."""
        return (self.waf["nosep"] - self.waf[policy]) / self._gap if self.has_gap else 0.0


def prefilled(records: Records) -> Records:
    """The records after one sequential write of their footprint, as the field measures traces."""
    writes = records[records["kind"] != KIND_TRIM]
    if len(writes) == 0:
        return records
    first = np.unique(writes["block"] // 256)
    last = np.unique((writes["block"] + writes["pages"] - 1) // 256)
    chunk = np.union1d(first, last)
    fill = np.zeros(len(chunk), records.dtype)
    fill["block"], fill["pages"], fill["request_pages"] = chunk * 256, 256, 256
    return np.concatenate([fill, records])


def requests_forgotten(records: Records) -> Records:
    """The same pages in the same order, each written as a request of its own."""
    writes = records["kind"] != KIND_TRIM
    pages = np.where(writes, records["pages"], 1).astype(np.int64)
    row, place = pages_one_by_one(pages)
    out, alone = records[row], writes[row]
    out["block"] += place.astype(np.uint64)
    out["pages"][alone] = out["request_pages"][alone] = 1
    out["request_offset"][alone] = out["file_place"][alone] = 0
    return out


def workload_of(
    raw: Records, vstreams: list[VStream], pstreams: int, settings: Settings | None = None
) -> Workload:
    """Raw requests as the filesystem would have reported them."""
    records = telemetry(raw)
    live = _core.PageTrace(records).peak_live
    return Workload(records, vstreams, pstreams, live, settings or Settings())


def waf_of(
    workload: Workload,
    policy: str,
    device: Device,
    tags: Tags | None = None,
    releases: Releases | None = None,
    tagged: str = "tags",
) -> float:
    """Write amplification by a policy of the simulator, or by tags and releases of pStreams.

    `tagged`: the simulator's policy that reads the tags.
    """
    streams = 0 if policy in (*IN_DEVICE, *HOST_ONLY) else workload.pstreams
    return _lab.waf(
        workload.records,
        policy if tags is None else tagged,
        streams,
        np.zeros(0, np.uint8) if tags is None else tags,
        device.spare,
        device.block_pages,
        device.warmup,
        device.victim,
        device.gc_mode,
        np.zeros(0, np.uint64) if releases is None else releases,
    )


def compare(
    workload: Workload,
    device: Device,
    policies: Sequence[str] = (),
    progress: Progress | None = None,
) -> Outcome:
    """Replay under each policy; nosep, learned and the oracles always.

    By default all of POLICIES; those ON_DEMAND by name only.
    """
    progress = progress or Progress("replay")
    wanted = [name for name in POLICIES if not policies or name in policies or name in _ALWAYS]
    wanted += [name for name in ON_DEMAND if name in policies]
    progress.step("learning")
    ours = learned(
        workload, device.spare, device.block_pages, device.gc_mode, progress, device.victim
    )
    tags = ours.tags
    for name in [each for each in wanted if each in RIVALS]:
        progress.step(f"fitting {name}")
        tags[name] = rival(name)(workload)
    figures = {}
    for name in wanted:
        if name not in (OTHERS, REVIEWED):
            progress.step(f"simulating {name}")
            figures[name] = waf_of(workload, name, device, tags.get(name), ours.releases.get(name))
    if OTHERS in wanted:
        progress.step(f"simulating {OTHERS}")
        ways = others_tags(workload)
        figures[OTHERS] = min(waf_of(workload, OTHERS, device, way) for way in ways)
    if REVIEWED in wanted:
        progress.step(f"simulating {REVIEWED}")
        own = tags["learned"], ours.releases["learned"]
        figures[REVIEWED] = waf_of(workload, REVIEWED, device, *own, "tags-aged")
    trace = _core.PageTrace(workload.records)
    return Outcome(figures, trace.writes, trace.peak_live, tags["learned"], ours.served)
