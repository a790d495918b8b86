"""The learner of a filesystem: records in, tables of (vStream, shape) → pStream out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.classes import (
    Floats,
    LifetimeKMeans,
    assign,
    quantile_edges,
    settle,
    spread_edges,
    squash,
    unsquash,
)
from classifierd.contexts import ContextIds, VStream
from classifierd.records import Records

Table = npt.NDArray[np.uint8]
# (row_of u16[vStreams], expected lifetimes u8[rows * shapes], chunks u8[chunks])
Known: TypeAlias = tuple[npt.NDArray[np.uint16], Table, Table]

# Coarse to fine. Age and place apart come before both together (docs/EXPERIMENTS.md, "Placement of
# generated workloads"). Levels with the chunk's class apply while all writes are of one vStream;
# with several they lower the share of the gap that is closed (there, "Chunk classes").
DEFAULT_LEVELS = (
    "overwrite",
    "age",
    "overwrite+end",
    "shape",
    "comm+overwrite",
    "comm+age",
    "comm+ext+overwrite",
    "comm+ext+age",
    "comm+ext+dir+overwrite",
    "comm+ext+dir+age",
    "vstream+overwrite",
    "vstream+age",
    "vstream+overwrite+end",
    "vstream+shape",
    "vstream+chunk+age",
    "vstream+chunk+shape",
)


_ERRORS = 2.0  # standard errors of a mean of lifetimes that differ by one log2

# Exact one-dimensional K-means; equal shares of volume; scikit-learn's, warm-started.
METHODS = ("spread", "quantile", "kmeans")


@dataclass(frozen=True)
class Settings:
    """The settings that can be tuned; the defaults are those measured."""

    epoch_pages: int = 0  # 0 = by the size of the device
    decay: float = 0.7
    kappa: float = 512.0
    deadband_log2: float = 1.0  # of shapes within a context
    method: str = "spread"  # how lifetimes are cut: METHODS
    settle: bool = True
    # A lifetime so near to its class stays there; farther where few events tell it.
    margin_log2: float = 0.15
    margin_most_log2: float = 0.75
    levels: tuple[str, ...] = DEFAULT_LEVELS

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot be."""
        if self.method not in METHODS:
            msg = f"method is one of {', '.join(METHODS)}, not {self.method}"
            raise ValueError(msg)
        unknown = {f for level in self.levels for f in level.split("+")} - _core.FEATURES.keys()
        if unknown or not self.levels:
            msg = f"levels: unknown features {sorted(unknown)}"
            raise ValueError(msg)
        if not (0 < self.decay <= 1 and self.kappa > 0 and self.deadband_log2 >= 0):
            msg = "decay is in (0, 1], kappa positive, deadband_log2 not negative"
            raise ValueError(msg)
        least, most = self.margin_log2, self.margin_most_log2
        if not 0 <= self.epoch_pages <= 1 << 24 or not 0 <= least <= most <= 4:
            msg = (
                "epoch_pages is at most 2^24, margin_log2 at most margin_most_log2, that at most 4"
            )
            raise ValueError(msg)


def epoch_pages_for(capacity_blocks: int) -> int:
    """65,536 pages, less on a small device: a sixteenth of it, at least 8,192."""
    return int(np.clip(capacity_blocks // 16, 8192, 65536))


@dataclass(frozen=True)
class ClassReport:
    """The content of a class, for the log."""

    pstream: int
    life_log2: float  # volume-weighted mean
    share: float  # of the volume written lately
    members: list[tuple[VStream, float]] = field(default_factory=list)  # heaviest first


class Learner:
    """The life table, its back-off and the classes cut from it. Not thread-safe."""

    def __init__(
        self,
        capacity_blocks: int,
        pstreams: int,
        settings: Settings | None = None,
        live_pages_min: int = 4096,
    ) -> None:
        self.settings = settings or Settings()
        self.live_pages = live_pages_min  # at most so many have been live at once
        self.pstreams = max(1, min(pstreams, 256))
        epoch = self.settings.epoch_pages or epoch_pages_for(capacity_blocks)
        self.epoch_pages = epoch
        self.life = _core.LifeTable(capacity_blocks, epoch, self.settings.decay)
        levels = [level.split("+") for level in self.settings.levels]
        self._backoff_of_one = self._backoff_by(levels)
        self._backoff_of_many = self._backoff_by(
            [level for level in levels if "chunk" not in level] or levels
        )
        self._backoff = self._backoff_of_one
        self._ids = ContextIds()
        self._kmeans = LifetimeKMeans(self.pstreams)
        self.vstreams: dict[int, VStream] = {}
        self.edges_: Floats | None = None
        # Tables are u8[rows, shapes], and row_of_ u16[vStreams] names the row of each vStream.
        # Row 0 is that of every vStream without a row of its own.
        self.row_of_: npt.NDArray[np.uint16] = np.zeros(_core.VSTREAMS, np.uint16)
        self.table_: Table = np.zeros((1, _core.SHAPES), np.uint8)
        self.lifetimes_: Table = np.zeros_like(self.table_)  # half steps of log2, plus one
        self.chunks_: Table = np.zeros(0, np.uint8)  # class of each chunk (clusters.py)
        self._speaking = False  # a table made from evidence exists
        self._stay: tuple[npt.NDArray[np.int64], Table] | None = None

    def _backoff_by(self, levels: list[list[str]]) -> _core.Backoff:
        masks = [sum(_core.FEATURES[feature] for feature in level) for level in levels]
        return _core.Backoff(masks, self.settings.kappa, self.settings.deadband_log2)

    @property
    def known_(self) -> Known:
        """The knowledge that the models of _core share."""
        return self.row_of_, self.lifetimes_.reshape(-1), self.chunks_

    def know(self, vstreams: Iterable[VStream]) -> None:
        """Take the filesystem's descriptors; later ones replace earlier ones."""
        self.vstreams.update((v.number, v) for v in vstreams)

    def stay(self, cells: npt.NDArray[np.int64], classes: Table, live_pages: int) -> None:
        """The first table is made as if cells were in these classes: as the last run left them.

        Raises ValueError for what are none.
        """
        if not 0 < live_pages <= 1 << 40 or (classes >= self.pstreams).any():
            msg = "classes or a size that cannot be"
            raise ValueError(msg)
        self.live_pages = live_pages
        self._stay = cells, classes

    def feed(self, records: Records) -> int:
        """Learn up to the end of the epoch; returns how many records that took."""
        return self.life.feed(records, self.chunks_)

    def end_epoch(self) -> Table:
        """Close the epoch and make the table anew."""
        self.life.end_epoch()
        return self.refresh()

    def refresh(self) -> Table:
        """Make the table from what is known now."""
        cells, volume, _, _ = self.life.cells()
        if len(cells) == 0:
            return self.table_
        one = len(np.unique(cells // _core.SHAPES)) < 2
        self._backoff = self._backoff_of_one if one else self._backoff_of_many
        self._backoff.fit(self.life, self._ids.rows(self.vstreams.values()))
        numbers, stranger = self._with_rows(cells, volume)
        mean, _ = self._backoff.predict(numbers)
        mine = np.isin(cells // _core.SHAPES, numbers)
        self._cut(self._of_cells(mean, numbers, cells[mine]), volume[mine])
        self._fill(numbers, mean, stranger)
        return self.table_

    def _with_rows(
        self, cells: npt.NDArray[np.uint32], volume: Floats
    ) -> tuple[npt.NDArray[np.uint16], int]:
        """Return the vStreams that get a row, ascending, and a vStream that nobody has met.

        All vStreams that fit get one, the most written first.
        """
        written = np.bincount(cells // _core.SHAPES, weights=volume, minlength=_core.VSTREAMS)
        met = np.zeros(_core.VSTREAMS, np.bool_)
        met[list(self.vstreams)] = True
        met[cells // _core.SHAPES] = True
        numbers, strangers = np.flatnonzero(met), np.flatnonzero(~met)
        most = np.argsort(-written[numbers], kind="stable")[: _core.TABLE_ROWS - 1]
        return np.sort(numbers[most]).astype(np.uint16), int(np.append(0, strangers)[-1])

    @staticmethod
    def _of_cells(
        mean: Floats, numbers: npt.NDArray[np.uint16], cells: npt.NDArray[np.uint32]
    ) -> Floats:
        row = np.searchsorted(numbers, cells // _core.SHAPES)
        out: Floats = mean[row, cells % _core.SHAPES]
        return out

    def _cut(self, values: Floats, volume: Floats) -> None:
        self.live_pages = max(self.live_pages, self.life.live_pages)
        bent = squash(values, self.live_pages)
        if self.settings.method == "kmeans":
            fresh = self._kmeans.fit(bent, volume).edges_
        elif self.settings.method == "quantile":
            fresh = quantile_edges(bent, volume, self.pstreams)
        else:
            fresh = spread_edges(bent, volume, self.pstreams)
        if self.settings.settle and self.edges_ is not None:
            fresh = settle(squash(self.edges_, self.live_pages), fresh, bent, volume)
        self.edges_ = unsquash(fresh, self.live_pages)

    def _previous(self, numbers: npt.NDArray[np.uint16], mean: Floats) -> Table | None:
        """The class of each lifetime until now, if there was any table."""
        if self._speaking:
            return self.table_[self.row_of_[numbers]]
        if self._stay is None or self.edges_ is None:
            return None
        (cells, classes), self._stay = self._stay, None
        previous = assign(mean, self.edges_)
        mine = np.isin(cells // _core.SHAPES, numbers)
        cells, classes = cells[mine], classes[mine]
        row = np.searchsorted(numbers, cells // _core.SHAPES)
        previous[row, cells % _core.SHAPES] = classes
        return previous

    def _margins(self, numbers: npt.NDArray[np.uint16]) -> Floats:
        """How far each lifetime [n, shapes] may stray from its class: errors of its mean.

        Files deleted whole are one event each, and a mean over few wanders.
        """
        cells, *_ = self.life.cells()
        mine = np.isin(cells // _core.SHAPES, numbers)
        row = np.searchsorted(numbers, cells[mine] // _core.SHAPES)
        events = np.zeros((len(numbers), _core.SHAPES))
        events[row, cells[mine] % _core.SHAPES] = self.life.events()[mine]
        error = _ERRORS / np.sqrt(np.maximum(events, 1.0))
        return np.clip(error, self.settings.margin_log2, self.settings.margin_most_log2)

    def _fill(self, numbers: npt.NDArray[np.uint16], mean: Floats, stranger: int) -> None:
        assert self.edges_ is not None
        margin = self._margins(numbers)
        previous = self._previous(numbers, mean)
        fresh = assign(mean, self.edges_, previous, margin)
        self.row_of_ = np.zeros(_core.VSTREAMS, np.uint16)
        self.row_of_[numbers] = np.arange(1, len(numbers) + 1)
        fallback, _ = self._backoff.predict(np.array([stranger], np.uint16))
        self.table_ = np.concatenate([assign(fallback, self.edges_), fresh])
        self.lifetimes_ = np.concatenate([_steps(fallback), _steps(mean)])
        self._speaking = True

    def _written_lately(self) -> tuple[npt.NDArray[np.uint32], Floats]:
        """Return the cells that were written lately, and their volume in pages."""
        cells, volume, _, _ = self.life.cells()
        return cells[volume > 0], volume[volume > 0]

    def vstream_lifetimes(self) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
        """(number, mean log2 life in pages, pages written lately) of each vStream with volume."""
        cells, volume = self._written_lately()
        numbers, inverse = np.unique(cells // _core.SHAPES, return_inverse=True)
        if len(numbers) == 0:
            return numbers.astype(np.int64), np.zeros(0), np.zeros(0)
        mean, _ = self._backoff.predict(numbers.astype(np.uint16))
        total = np.bincount(inverse, weights=volume).astype(np.float64)
        life = np.bincount(inverse, weights=volume * mean[inverse, cells % _core.SHAPES])
        keep = total > 0
        return numbers[keep].astype(np.int64), life[keep] / total[keep], total[keep]

    def expected(self, vstream: int) -> tuple[Floats, Floats]:
        """(mean log2 life in pages, pages of evidence behind it) of each shape of a vStream."""
        mean, evidence = self._backoff.predict(np.array([vstream], np.uint16))
        return mean[0], evidence[0]

    def report(self) -> list[ClassReport]:
        """The content of each class in use, shortest lifetime first."""
        cells, volume = self._written_lately()
        total = float(volume.sum())
        if total <= 0 or self.edges_ is None:
            return []
        vstream, shape = cells // _core.SHAPES, cells % _core.SHAPES
        numbers = np.unique(vstream).astype(np.uint16)
        mean, _ = self._backoff.predict(numbers)
        values = self._of_cells(mean, numbers, cells)
        cls = self.table_[self.row_of_[vstream], shape]
        out = []
        for p in np.unique(cls):
            mine = (cls == p) & (volume > 0)
            weight = float(volume[mine].sum())
            if weight <= 0:
                continue
            by_vstream = np.bincount(vstream[mine], weights=volume[mine])
            top = np.argsort(by_vstream)[::-1][:3]
            members = [
                (self.vstreams.get(int(v), VStream(int(v))), float(by_vstream[v] / total))
                for v in top
                if by_vstream[v] > 0
            ]
            life = float((values[mine] * volume[mine]).sum() / weight)
            out.append(ClassReport(int(p), life, weight / total, members))
        return out


def _steps(mean_log2: Floats) -> Table:
    """Lifetimes in half steps of log2 plus one, 0 where nothing is known."""
    return np.where(mean_log2 < 0, 0, np.clip(2 * mean_log2, 0, 126) + 1).astype(np.uint8)
