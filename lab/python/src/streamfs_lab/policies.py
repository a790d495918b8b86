"""Placements by name: those that tag writes as learning does, and those the simulator knows.

Every one is strictly causal: a page's tag depends on what came before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.contest import CANDIDATES, Contest, Device
from classifierd.contexts import VStream
from classifierd.learner import Settings, epoch_pages_for
from classifierd.progress import Progress
from classifierd.records import KIND_TRIM, Records

Tags = npt.NDArray[np.uint8]
Releases = npt.NDArray[np.uint64]  # [n, 2]: from this page write on, this pStream is used no more

# The simulator's policies. The ones that learn from copies run inside the device.
IN_DEVICE = ("sepgc", "sepbit", "dac")
# The logistic model with a history of each page, which no mount keeps.
FULL_HISTORY = "logistic-full-history"
HOST_ONLY = ("autostream-sfr", "autostream-mq", "warcip")
# Policies that tag: candidates of the contest by themselves.
TAGGED = ("life-table", "logistic", "chunk-kmeans")


@dataclass
class Workload:
    """Records as the filesystem reports them, and the facts known before the first record."""

    records: Records
    vstreams: list[VStream]
    pstreams: int
    live_pages: int  # the most that are live at once: how large the device is
    settings: Settings = field(default_factory=Settings)

    @property
    def end(self) -> int:
        """The block behind the last one."""
        return int((self.records["block"] + self.records["pages"]).max(initial=1))

    @property
    def epoch_pages(self) -> int:
        """The epoch's length. It depends on the live pages, because addresses may be sparse."""
        return self.settings.epoch_pages or epoch_pages_for(self.live_pages)

    @property
    def epoch_settings(self) -> Settings:
        """The settings with the epoch's length."""
        return replace(self.settings, epoch_pages=self.epoch_pages)


def epochs(records: Records, pages: int) -> list[Records]:
    """The records in parts of about so many pages written."""
    written = np.cumsum(
        np.where(records["kind"] != KIND_TRIM, records["pages"], 0).astype(np.int64)
    )
    cuts = np.searchsorted(written, np.arange(pages, written[-1:].sum(), pages), side="left") + 1
    return np.split(records, np.unique(cuts))


@dataclass
class Learned:
    """streamfs's own placement, and each of its candidates alone."""

    # By candidate, and "learned" for the result of the contest; u8[pages written].
    tags: dict[str, Tags]
    releases: dict[str, Releases]
    served: dict[str, int]  # epochs


def contest_of(
    workload: Workload,
    spare: float = 0.07,
    block_pages: int = 256,
    gc_mode: str = "same",
    victim: str = "greedy",
) -> Contest:
    """Return the contest that the daemon would run over these writes, before the first of them.

    It has the daemon's candidates. The live pages and every vStream, which the daemon must measure
    or guess, are given. As on a mount, the life table serves first if the workload has several
    vStreams. If it has one, the table knows too little at first, and "nosep" serves. The
    simulator's reserve comes on top of `spare`, so the contest gets the sum of both.
    """
    live = max(workload.live_pages, 1)
    whole = spare + _core.RESERVE_BLOCKS * block_pages / live
    device = Device(live, workload.pstreams, whole, block_pages, gc_mode, victim)
    begins = "life-table" if len(workload.vstreams) > 1 else "nosep"
    contest = Contest(workload.end, device, workload.epoch_settings, serving=begins)
    contest.know(workload.vstreams)
    return contest


def learned(
    workload: Workload,
    spare: float = 0.07,
    block_pages: int = 256,
    gc_mode: str = "same",
    progress: Progress | None = None,
    victim: str = "greedy",
) -> Learned:
    """streamfs's own placement: the contest, as contest_of() sets it up.

    A mount that adopts at each epoch's end what the daemon publishes places every page alike.
    docs/design/placement.md says how a mount differs.
    """
    contest = contest_of(workload, spare, block_pages, gc_mode, victim)
    parts: dict[str, list[Tags]] = {name: [] for name in (*CANDIDATES, "learned")}
    releases: dict[str, list[tuple[int, int]]] = {name: [] for name in parts}
    served, pages = dict.fromkeys(CANDIDATES, 0), 0
    in_all = int(workload.records["pages"][workload.records["kind"] != KIND_TRIM].sum())
    last = _used(contest, contest.serving)
    for tags, server, ends in contest.run(workload.records):
        used = _used(contest, server)
        for name, streams in used.items():
            releases[name] += [(pages, stream) for stream in sorted(last[name] - streams)]
        last = used
        for name in CANDIDATES:
            parts[name].append(tags[name])
        parts["learned"].append(tags[server])
        served[server] += ends
        pages += len(tags[server])
        if progress is not None:
            progress.reached(pages, in_all)
    none = np.zeros(0, np.uint8)
    return Learned(
        {name: np.concatenate([none, *own]) for name, own in parts.items()},
        {name: np.array(own, np.uint64).reshape(-1, 2) for name, own in releases.items()},
        served,
    )


def _used(contest: Contest, server: str) -> dict[str, frozenset[int]]:
    return {**contest.used_, "learned": contest.used_[server]}
