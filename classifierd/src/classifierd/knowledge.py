"""The daemon's knowledge of one filesystem: the contest and its memory on disk.

Records come in; what is said is publication.py's, sockets and timing are daemon.py's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from classifierd import explain, state
from classifierd.choice import Verdict
from classifierd.classes import LifetimeKMeans
from classifierd.config import Config
from classifierd.contest import TABLES, Contest, Device
from classifierd.contexts import VStream
from classifierd.errors import sentence
from classifierd.learner import Learner, Table
from classifierd.records import RECORD, Records

log = logging.getLogger(__name__)

# Open blocks eat what is not live: where those of all pStreams take more than this share of it, a
# device that is nearly full has one stream (Vishwakarma 2019: off above 90 %). Off above the first
# share used, on again below the other.
_OPEN_OF_SPARE = 0.25
_FULL, _FULL_NO_MORE = 0.88, 0.85
_SAMPLED = 1024  # records


@dataclass(frozen=True)
class Identity:
    """Which filesystem, and how large."""

    uuid: bytes
    capacity_blocks: int
    used_blocks: int = 0  # when the daemon came


class Knowledge:
    """The contest, chunks and state of a filesystem. Not thread-safe."""

    def __init__(
        self, identity: Identity, device: Device, config: Config, state_dir: Path | None
    ) -> None:
        capacity = identity.capacity_blocks
        self._uuid = identity.uuid
        self._capacity_blocks = capacity
        self._open_pages = device.pstreams * device.block_pages
        self._physical_pages = capacity * (1 + device.spare)
        self.crowded = False  # too full for more than one stream
        self._spoke = False
        self._state_dir = state_dir
        candidates = config.daemon.candidates
        # The first candidate begins, but a logistic model only where no table competes.
        begins = next((name for name in candidates if name in TABLES), candidates[0])
        classes = config.daemon.chunk_classes
        self._used_blocks = identity.used_blocks
        self._make = partial(Contest, capacity, device, config.learner, candidates, begins, classes)
        self.contest = self._cold()
        self.fill(identity.used_blocks)
        self._kmeans = LifetimeKMeans(device.pstreams)
        self.sample_: Records = np.zeros(0, RECORD)  # of what was fed last

    def _cold(self) -> Contest:
        """Return a contest that has learned nothing."""
        contest = self._make()
        # A daemon that comes late sees little of what is live; an eighth is a modest guess.
        contest.learner.live_pages = max(self._capacity_blocks // 8, 4096)
        contest.fill(self._used_blocks)
        return contest

    @property
    def learner(self) -> Learner:
        """The life table's."""
        return self.contest.learner

    @property
    def epoch_due(self) -> bool:
        """Whether enough was written for an epoch."""
        return self.contest.epoch_due

    def know(self, vstreams: Iterable[VStream]) -> None:
        """Take the filesystem's descriptors; later ones replace earlier ones."""
        self.contest.know(vstreams)

    def feed(self, records: Records) -> int:
        """Learn up to the end of the epoch; returns how many records that took."""
        taken = self.contest.feed(records)
        self.sample_ = records[max(0, taken - _SAMPLED) : taken]
        return taken

    def fill(self, used_blocks: int) -> None:
        """So much of the device holds data now: decide whether it can afford streams."""
        limit = _FULL_NO_MORE if self.crowded else _FULL
        room = _OPEN_OF_SPARE * max(0.0, self._physical_pages - used_blocks)
        crowded = self._open_pages > room and used_blocks > limit * self._capacity_blocks
        if crowded != self.crowded:
            log.info("the device is %s for streams", "too full" if crowded else "empty enough")
        self.crowded = crowded

    def forget_births(self) -> None:
        """Too much went unseen to say what is alive; what has been learned stays."""
        self.learner.life.forget_births()

    def end_epoch(self) -> Verdict:
        """Close the epoch, and say what was decided and why."""
        begun, before = time.monotonic(), self.contest.serving
        verdict = self.contest.end_epoch()
        if verdict.switched:
            copies = ", ".join(f"{name} {each:.3f}" for name, each in verdict.copies.items())
            log.info("%s wins the contest, not %s; %s is offered (copied for a page written: %s)",
                     verdict.serving, before, self.published, copies)  # fmt: skip
        for line in (
            *explain.class_lines(self.learner),
            *explain.chunk_lines(self.contest.chunks),
            explain.kmeans_line(self.learner, self._kmeans),
        ):
            log.info("  %s", line)
        log.debug("  the epoch's end took %.0f ms", (time.monotonic() - begun) * 1000)
        return verdict

    @property
    def speaks(self) -> bool:
        """Whether there is anything to say that the filesystem does not know by itself."""
        served = self.contest.decided or self.contest.serving != "nosep"
        self._spoke |= served or self.crowded
        return self._spoke

    @property
    def published(self) -> str:
        """The candidate that the filesystem gets."""
        return "nosep" if self.crowded else self.contest.serving

    def placements(self) -> Table:
        """The pStreams of the table that is published, u8[rows, shapes]."""
        return self.contest.table_of(self.published)

    def load(self) -> bool:
        """Take up where the last run ended; whether there was anything. Needs the vStreams."""
        if self._state_dir is None:
            return False
        if not state.load(self._state_dir, self._uuid, self.contest):
            known = self.learner.vstreams.values()
            self.contest = self._cold()  # the state may have filled a part of the other one
            self.contest.know(known)
            return False
        self.contest.refresh()
        return True

    def save(self) -> None:
        """Keep what is known for the next run; a failure is logged, no more."""
        if self._state_dir is None:
            return
        try:
            state.save(self._state_dir, self._uuid, self.contest)
        except OSError as error:
            log.warning("state not saved: %s", sentence(error))
