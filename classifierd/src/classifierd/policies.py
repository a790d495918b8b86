"""Placements by name: those that tag writes as learning does, and those the simulator knows.

Every one is strictly causal: a page's tag depends on what came before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.choice import Choice
from classifierd.clusters import ChunkClusters
from classifierd.contexts import VStream
from classifierd.learner import Learner, Settings, epoch_pages_for
from classifierd.records import CHUNK_PAGES, KIND_TRIM, Records

Tags = npt.NDArray[np.uint8]

# The simulator's, beside ours. The first learn from copies, so they run inside the device.
IN_DEVICE = ("sepgc", "sepbit", "dac")
HOST_ONLY = ("autostream-sfr", "autostream-mq", "warcip")


@dataclass
class Workload:
    """Records as the filesystem reports them, and what is known before the first of them."""

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
        """Addresses may be sparse: the epoch goes by what is live."""
        return self.settings.epoch_pages or epoch_pages_for(self.live_pages)

    def learner(self) -> Learner:
        """A life table's learner that knows nothing yet."""
        settings = replace(self.settings, epoch_pages=self.epoch_pages)
        learner = Learner(self.end, self.pstreams, settings)
        learner.know(self.vstreams)
        return learner


def learned_tags(records: Records, learner: Learner) -> Tags:
    """The pStream of every page written: each by the table as it stood before the page."""
    out = [_core.tags(part, learner.table_.reshape(-1)) for part in learner.epochs(records)]
    return np.concatenate(out) if out else np.zeros(0, np.uint8)


def life_table(workload: Workload) -> Tags:
    """By context and place in the request."""
    return learned_tags(workload.records, workload.learner())


def logistic(workload: Workload) -> Tags:
    """By everything known of a write, hashed."""
    tags: Tags = logistic_cuts(workload, [workload.pstreams])[0]
    return tags


def logistic_cuts(workload: Workload, classes: list[int]) -> Tags:
    """The same, its lifetimes cut into so many classes and so many: a row for each."""
    model = _core.Predictor(workload.end, workload.live_pages, classes)
    learner = workload.learner()
    # What the table knows by now is one of the things the model learns from.
    out = [
        model.feed(part, learner.lifetimes_.reshape(-1))
        for part in learner.epochs(workload.records)
    ]
    return np.concatenate(out, axis=1) if out else np.zeros((len(classes), 0), np.uint8)


def chunk_kmeans(workload: Workload) -> Tags:
    """By how often the chunk a page lies in is overwritten: the source's own idea."""
    counter = _core.ChunkCounter(4.0 * workload.epoch_pages)
    clusters = ChunkClusters(workload.pstreams)
    known, labels = np.zeros(0, np.uint64), np.zeros(0, np.int32)
    out = []
    for part in epochs(workload.records, workload.epoch_pages):
        writes = part[part["kind"] != KIND_TRIM]
        pages = writes["pages"].astype(np.int64)
        row = np.repeat(np.arange(len(writes)), pages)
        place = np.arange(len(row)) - (np.cumsum(pages) - pages)[row]
        chunk = (writes["block"][row] + place.astype(np.uint64)) // CHUNK_PAGES
        out.append(_labels_of(chunk, known, labels))
        counter.feed(part)
        known, relative, recency = counter.view()
        labels = clusters.fit(relative, recency).labels_
    return np.concatenate(out) if out else np.zeros(0, np.uint8)


def _labels_of(
    chunk: npt.NDArray[np.uint64], known: npt.NDArray[np.uint64], labels: npt.NDArray[np.int32]
) -> Tags:
    """The class of each chunk; of one not met yet, the first."""
    if len(known) == 0:
        return np.zeros(len(chunk), np.uint8)
    at = np.minimum(np.searchsorted(known, chunk), len(known) - 1)
    return np.where(known[at] == chunk, labels[at], 0).astype(np.uint8)


def epochs(records: Records, pages: int) -> list[Records]:
    """The records in parts of about so many pages written."""
    written = np.cumsum(
        np.where(records["kind"] != KIND_TRIM, records["pages"], 0).astype(np.int64)
    )
    cuts = np.searchsorted(written, np.arange(pages, written[-1:].sum(), pages), side="left") + 1
    return np.split(records, np.unique(cuts))


TAGGED: dict[str, Callable[[Workload], Tags]] = {
    "life-table": life_table,
    "logistic": logistic,
    "chunk-kmeans": chunk_kmeans,
}


# In competition (choice.py); the first serves until another has shown that it is better. Streams
# are not free where spare blocks are few, hence fewer of them as well.
CANDIDATES = ("logistic", "logistic-few", "life-table", "nosep")


def learned(
    workload: Workload, spare: float = 0.07, block_pages: int = 256
) -> tuple[dict[str, Tags], dict[str, int]]:
    """What streamfs does: candidates in competition (choice.py).

    Returns the tags of each candidate and of what came of them ("learned"), and how many epochs
    each of them served.
    """
    most, few = logistic_cuts(workload, [workload.pstreams, max(2, workload.pstreams // 2)])
    nosep = np.zeros(len(most), np.uint8)
    tags = dict(
        zip(CANDIDATES, (most, few, life_table(workload), nosep), strict=True),
    )
    choice = Choice(CANDIDATES, workload.live_pages, workload.pstreams, spare, block_pages)
    out, served, at = [], dict.fromkeys(CANDIDATES, 0), 0
    for part in epochs(workload.records, workload.epoch_pages):
        pages = int(part["pages"][part["kind"] != KIND_TRIM].sum())
        own = [tags[name][at : at + pages] for name in CANDIDATES]
        served[CANDIDATES[choice.serving]] += 1
        out.append(own[choice.serving])
        choice.end_epoch(part, own)
        at += pages
    tags["learned"] = np.concatenate(out) if out else np.zeros(0, np.uint8)
    return tags, served
