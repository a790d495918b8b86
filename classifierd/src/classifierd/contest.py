"""The contest of placements over one filesystem's writes: the loop of learning and choosing.

Replay and the daemon run the same one. Each epoch every candidate tags what is written by what it
knew before, shadow devices show what that would have cost, and only then is it learned from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.choice import Choice, Tags, Verdict
from classifierd.clusters import CHUNK_CLASSES, ChunkClusters
from classifierd.contexts import VStream
from classifierd.learner import Learner, Settings, Table
from classifierd.records import RECORD, Records

# Streams are not free where spare blocks are few, hence fewer of them as well: a half, a quarter.
_MODELS = {"logistic": 1, "logistic-few": 2, "logistic-fewer": 4}  # pStreams for a class
# In this order: where several are nearly alike, the first is gone over to (choice.py).
CANDIDATES = (*_MODELS, "life-table", "life-table-few", "chunk-kmeans", "nosep")
# The candidates whose placements are a table.
TABLES = ("life-table", "life-table-few", "chunk-kmeans", "nosep")
# A filesystem that holds less than this share of its device is judged as if it held as much: of
# fewer blocks too many would be open.
_BEGINS = 1 / 16
PSTREAMS_MAX = 128  # limit of the pStreams that are told apart


@dataclass(frozen=True)
class Device:
    """The device that the shadow devices imitate."""

    live_pages: int  # at most so many are live at once
    pstreams: int
    spare: float = 0.07  # physical ÷ live_pages - 1: all there is
    block_pages: int = 256
    gc_mode: str = "same"  # where copies go: to their pStream, an own block of it, one of all
    victim: str = "greedy"  # the policy that chooses the block to collect


def pstreams_of(classes: int, pstreams: int) -> Tags:
    """The pStream of each class, u8[classes]: spread evenly, the longest-lived in the last one.

    So what lives long lies in the same pStream however many classes there are, and going over to
    more of them does not strew it. Raises ValueError for more classes than pStreams, or none.
    """
    if not 1 <= classes <= pstreams:
        msg = f"{classes} classes for {pstreams} pStreams"
        raise ValueError(msg)
    return ((np.arange(classes) + 1) * pstreams // classes - 1).astype(np.uint8)


class Contest:
    """Candidates that learn from the same writes, one of which serves. Not thread-safe.

    `capacity_blocks`: the block behind the last one. `candidates` are some of CANDIDATES, the first
    preferred where they are nearly alike, and `serving` the one that begins: nosep where it
    competes, else the first. `chunk_classes`: groups of the device's chunks (clusters.py). Raises
    ValueError for what is no candidate.
    """

    def __init__(
        self,
        capacity_blocks: int,
        device: Device,
        settings: Settings | None = None,
        candidates: tuple[str, ...] = CANDIDATES,
        serving: str | None = None,
        chunk_classes: int = CHUNK_CLASSES,
    ) -> None:
        unknown = set(candidates) - set(CANDIDATES)
        if unknown or not candidates:
            msg = f"candidates are some of {', '.join(CANDIDATES)}"
            raise ValueError(msg)
        self.candidates = candidates
        self.pstreams = min(device.pstreams, PSTREAMS_MAX)
        self.learner = Learner(capacity_blocks, self.pstreams, settings)
        self._model: _core.Predictor | None = None
        self._taught = False  # restored
        self._live_pages = device.live_pages
        self._cuts = {
            name: min(self.pstreams, max(2, self.pstreams // share))
            for name, share in _MODELS.items()
            if name in candidates
        }
        if self._cuts:
            cuts = list(self._cuts.values())
            self._model = _core.Predictor(capacity_blocks, device.live_pages, cuts)
        begins = "nosep" if "nosep" in candidates else candidates[0]
        shadow = _core.Shadow(
            device.live_pages,
            len(candidates),
            self.pstreams,
            device.spare,
            device.block_pages,
            gc_mode=device.gc_mode,
            begins=_BEGINS,
            victim=device.victim,
        )
        self._choice = Choice(candidates, shadow, serving or begins)
        self.chunks = ChunkClusters(max(device.live_pages / 2, 4096.0), chunk_classes)
        # The pStreams of each of TABLES, u8[rows, shapes], by the learner's rows.
        mixed = np.full_like(self.learner.table_, self.pstreams - 1)
        self.tables_: dict[str, Table] = dict.fromkeys(TABLES, mixed)
        # The pStreams that each candidate writes to; what one uses no more is released.
        self.used_: dict[str, frozenset[int]] = {}
        self._use()
        self._records: list[Records] = []  # of this epoch
        self._tags: list[list[Tags]] = []  # of each of these

    @property
    def serving(self) -> str:
        """The candidate that serves."""
        return self._choice.serving

    @property
    def decided(self) -> bool:
        """Whether evidence has said who serves; before, the filesystem knows as much."""
        return self._choice.decided

    @property
    def epoch_due(self) -> bool:
        """Whether enough was written for an epoch."""
        return bool(self.learner.life.epoch_due)

    def know(self, vstreams: Iterable[VStream]) -> None:
        """Take the filesystem's descriptors; later ones replace earlier ones."""
        self.learner.know(vstreams)

    def feed(self, records: Records) -> int:
        """Tag and learn up to the end of the epoch; returns how many records that took."""
        if len(records) == 0:
            return 0
        taken = max(1, self.learner.feed(records))
        self._records.append(records[:taken])
        self._tags.append(self._tag(records[:taken]))
        self.chunks.feed(records[:taken])
        return taken

    def end_epoch(self) -> Verdict:
        """Close the epoch: say who serves from now on, and make the tables anew."""
        records = np.concatenate([np.zeros(0, RECORD), *self._records])
        none = np.zeros(0, np.uint8)
        tags = [np.concatenate([none, *parts]) for parts in zip(*self._tags, strict=True)]
        verdict = self._choice.end_epoch(records, tags or [none] * len(self.candidates))
        self._records, self._tags = [], []
        self.chunks.fit_when_due()
        self.learner.chunks_ = self.chunks.map_
        self.learner.end_epoch()
        self._spread()
        self._use()
        if self._model is not None:
            self._model.end_epoch()
        return verdict

    def _use(self) -> None:
        self.used_ = {name: self._streams_of(name) for name in self.candidates}
        self._choice.use(list(self.used_.values()))

    def _streams_of(self, name: str) -> frozenset[int]:
        if name in self._cuts:
            return frozenset(pstreams_of(self._cuts[name], self.pstreams).tolist())
        return frozenset(np.unique(self.tables_[name]).tolist())

    def run(self, records: Records) -> Iterator[tuple[dict[str, Tags], str, bool]]:
        """Take all of it, part by part.

        Gives what each candidate says of the part's pages, u8[pages written], who serves them, and
        whether they end an epoch.
        """
        at = 0
        while at < len(records):
            at += self.feed(records[at:])
            tags = dict(zip(self.candidates, self._tags[-1], strict=True))
            yield tags, self.serving, self.epoch_due
            if self.epoch_due:
                self.end_epoch()

    def table_of(self, name: str) -> Table:
        """The table that is published with a candidate, u8[rows, shapes], by the learner's rows.

        A logistic model has the life table beside it, which says where a new file's first block
        goes.
        """
        return self.tables_.get(name, self.tables_["life-table"])

    def logistic_of(self, name: str) -> _core.ServingLogistic | None:
        """The logistic model of a candidate as ModelWriter.prepare() takes it; None for a table."""
        if name not in self._cuts or self._model is None:
            return None
        cut = list(self._cuts).index(name)
        pstreams = pstreams_of(self._cuts[name], self.pstreams)
        return self._model, cut, pstreams

    def logistic_axis(self) -> dict[str, object]:
        """Return the live pages of the landmarks, and the classes' edges by logistic candidate."""
        if self._model is None:
            return {}
        edges = {name: self._model.edges(cut) for cut, name in enumerate(self._cuts)}
        return {"live_pages": self._live_pages, "edges": edges}

    def logistic_arrays(self) -> dict[str, npt.NDArray[np.int8]]:
        """Return what the logistic model has learned, i8[rows, landmarks]; {} if none competes."""
        if self._model is None:
            return {}
        return {"weights": self._model.weights, "gradients": self._model.gradients}

    def restore_logistic(
        self, axis: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[np.generic]]
    ) -> None:
        """Continue with what logistic_axis() and logistic_arrays() returned.

        Does nothing if other logistic candidates competed, or if as many pages could not live.
        Raises KeyError, TypeError or ValueError for what cannot be.
        """
        edges = axis.get("edges", {})
        counts = {name: len(each) + 1 for name, each in edges.items()}
        if self._model is None or counts != self._cuts or axis["live_pages"] != self._live_pages:
            return
        weights, gradients = (
            arrays[name].reshape(-1).astype(np.int8) for name in ("weights", "gradients")
        )
        self._model.restore(weights, gradients, [list(edges[name]) for name in self._cuts])
        self._taught = True

    def fill(self, pages: int, first: int = 0) -> None:
        """So many pages, from `first` on, were written before anyone looked, by no separation."""
        self._choice.fill(pages, first)

    def serve(self, name: str) -> bool:
        """Let a candidate serve, as it did in an earlier run; whether it can.

        A logistic model can only if restore_logistic() has what that run had learned.
        """
        return (self._taught or name not in self._cuts) and self._choice.serve(name)

    def _tag(self, records: Records) -> list[Tags]:
        """The pStream of each page written, u8[pages], by each candidate."""
        learner, out = self.learner, dict[str, Tags]()
        if self._model is not None:
            # The life table's expectation is a feature of the model.
            rows = self._model.feed(records, learner.known_)
            for (name, cut), row in zip(self._cuts.items(), rows, strict=True):
                out[name] = pstreams_of(cut, self.pstreams)[row]
        for name in self.tables_.keys() & set(self.candidates):
            out[name] = self._placed(records, self.tables_[name])
        return [out[name] for name in self.candidates]

    def _placed(self, records: Records, table: Table) -> Tags:
        placed: Tags = _core.tags(
            records, self.learner.row_of_, table.reshape(-1), self.learner.chunks_
        )
        return placed

    def refresh(self) -> None:
        """Make the tables from what is known now."""
        self.learner.refresh()
        self._spread()

    def _spread(self) -> None:
        """Spread the classes over the pStreams; neighbours share one where there are to be few."""
        edges = self.learner.edges_
        classes = 1 if edges is None else 1 + int(np.isfinite(edges).sum())
        every = np.minimum(np.arange(256), classes - 1)
        table = self.learner.table_
        self.tables_ = {
            "life-table": pstreams_of(classes, self.pstreams)[every][table],
            "life-table-few": pstreams_of((classes + 1) // 2, self.pstreams)[every // 2][table],
            "chunk-kmeans": np.broadcast_to(self._by_chunk(), table.shape).copy(),
            "nosep": np.full_like(table, self.pstreams - 1),
        }

    def _by_chunk(self) -> Tags:
        """The pStream of each shape by its chunk's class alone, u8[shapes].

        The chunks overwritten least come last, and with them those that nothing is known of.
        """
        ranks = self.chunks.ranks()
        pstreams = pstreams_of(min(ranks.max() + 1, self.pstreams), self.pstreams)
        of_class = pstreams[ranks * len(pstreams) // (ranks.max() + 1)]
        return np.repeat(of_class, _core.SHAPES // _core.CHUNK_CLASSES)
