"""Chunks of the device grouped by how often their data is overwritten, beside the other chunks.

Vishwakarma 2019 proposes it (future work). The group of a chunk is part of a page's shape
(base/wire/model_table.h): the life table tells apart writes to chunks of different groups, and one
candidate of the contest places by the group alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from classifierd import _core
from classifierd.records import KIND_TRIM, Records

Features = npt.NDArray[np.float32]

# K-means learns from no more chunks than this, evenly drawn; all are then assigned.
_SAMPLE = 1 << 16
CHUNK_CLASSES = 8  # the default
# Counts and times are compared as log2, and clipped to these bounds.
_LOGGED = [_core.CHUNK_FEATURES.index(n) for n in ("relative", "recency_pages", "interval_pages")]
_LEAST, _MOST = np.float32(2.0**-10), np.float32(2.0**40)


@dataclass(frozen=True)
class ChunkClass:
    """A group of chunks and its centre.

    `identity`: its number in ChunkClusters.map_. `features`: by the names of CHUNK_FEATURES.
    """

    identity: int
    chunks: int
    features: dict[str, float]


class ChunkClusters:
    """K-means on all of CHUNK_FEATURES, standardised, started where the last one ended.

    The first fit orders the classes by frequency, hottest first; later ones keep their numbers,
    because each centre starts from its own last place. A feature that is unknown for a chunk (NaN)
    counts as the average; a feature that is the same everywhere counts for nothing.
    """

    def __init__(self, half_life_pages: float = 4096.0, k: int = CHUNK_CLASSES) -> None:
        if not 1 <= k < _core.CHUNK_CLASSES:
            msg = f"1 to {_core.CHUNK_CLASSES - 1} classes of chunks"
            raise ValueError(msg)
        self.k = k
        self._half_life_pages = half_life_pages
        self._counter = _core.ChunkCounter(half_life_pages)
        self._clock_pages = 0
        # The class of each chunk, u8[chunks]: its label plus one; 0: nothing died there lately.
        self.map_: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.centres_: Features = np.zeros((0, len(_core.CHUNK_FEATURES)), np.float32)
        self.labels_: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._fitted_pages = 0

    def fit(self, features: Features) -> ChunkClusters:
        """Group chunks: a row each. Fewer distinct chunks than classes: fewer classes."""
        sample = _bent(features[:: len(features) // _SAMPLE + 1])
        mean, spread = _scale(sample)
        points = _standardised(sample, mean, spread)
        k = min(self.k, len(np.unique(points, axis=0)))
        if k == 0:
            self.labels_ = np.zeros(0, np.int32)
            return self
        warm = len(self.centres_) == k
        start = (self.centres_ - mean) / spread if warm else _spread(points, k)
        model = KMeans(k, init=start, n_init=1, max_iter=50).fit(points)
        if not warm:
            hottest_first = np.argsort(-model.cluster_centers_[:, 0], kind="stable")
            model.cluster_centers_ = np.ascontiguousarray(model.cluster_centers_[hottest_first])
        self.centres_ = model.cluster_centers_ * spread + mean
        # A part at a time: of a million chunks, copies of all would be most of the daemon's memory.
        parts = [features[at : at + _SAMPLE] for at in range(0, len(features), _SAMPLE)]
        labels = [model.predict(_standardised(_bent(part), mean, spread)) for part in parts]
        self.labels_ = np.concatenate(labels)
        return self

    def feed(self, records: Records) -> None:
        """Count what dies in each chunk."""
        self._counter.feed(records)
        written = records["pages"][records["kind"] != KIND_TRIM]
        self._clock_pages += int(written.sum(dtype=np.int64))

    def fit_when_due(self) -> None:
        """Group the chunks again once as many pages were written as there are chunks.

        A million chunks take half a second.
        """
        chunks, due = len(self._counter), self._fitted_pages + len(self._counter)
        # After a restart the counter has seen little of what the restored map knows.
        starting = 2 * chunks < len(self.labels_) and self._clock_pages < self._half_life_pages
        # Fewer chunks than classes would give the classes other numbers.
        few = chunks < max(len(self.centres_), 1)
        if self._clock_pages < due or starting or few:
            return
        numbers, features = self._counter.view()
        self.fit(features)
        self._fitted_pages = self._clock_pages
        numbers = numbers[: np.searchsorted(numbers, _core.CHUNKS)]
        self.map_ = np.zeros(int(numbers[-1]) + 1 if len(numbers) else 0, np.uint8)
        self.map_[numbers] = self.labels_[: len(numbers)] + 1

    def restore(self, chunks: npt.NDArray[np.generic], centres: npt.NDArray[np.generic]) -> None:
        """Continue with another run's map_ and centres_. Raises ValueError if they cannot be."""
        sound = (
            centres.ndim == 2
            and len(centres) <= self.k
            and centres.shape[1] == len(_core.CHUNK_FEATURES)
            and np.isfinite(centres.astype(np.float32)).all()
        )
        classes = chunks.astype(np.uint8)
        if not sound or classes.ndim != 1 or not len(classes) <= _core.CHUNKS:
            msg = "classes of chunks that cannot be"
            raise ValueError(msg)
        if classes.max(initial=0) > len(centres):
            msg = "a class of chunks that is not there"
            raise ValueError(msg)
        self.map_, self.centres_ = classes, centres.astype(np.float32)
        self.labels_ = classes[classes > 0].astype(np.int32) - 1

    def ranks(self) -> npt.NDArray[np.int64]:
        """Return the rank of each class in map_, i64[CHUNK_CLASSES]; 0 is overwritten most."""
        out = np.full(_core.CHUNK_CLASSES, len(self.centres_))
        hottest_first = np.argsort(-self.centres_[:, 0], kind="stable")
        out[1 + hottest_first] = np.arange(len(self.centres_))
        return out

    def classes(self) -> list[ChunkClass]:
        """The classes, each with the number of its chunks now."""
        counts = np.bincount(self.labels_, minlength=len(self.centres_))
        centres = self.centres_.astype(np.float64)
        centres[:, _LOGGED] = np.exp2(centres[:, _LOGGED])
        return [
            ChunkClass(i + 1, int(counts[i]), dict(zip(_core.CHUNK_FEATURES, row, strict=True)))
            for i, row in enumerate(centres.tolist())
        ]


def _bent(features: Features) -> Features:
    """Log2 where _LOGGED; NaN stays, nothing else is beyond bounds."""
    out: Features = np.clip(features, -_MOST, _MOST, dtype=np.float32)
    out[:, _LOGGED] = np.log2(np.maximum(out[:, _LOGGED], _LEAST))
    return out


def _scale(points: Features) -> tuple[Features, Features]:
    """Mean and standard deviation of what is known, by column; 0 and 1 where there is none."""
    known = np.isfinite(points)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, points, 0).sum(axis=0, dtype=np.float64) / count
    square = np.where(known, (points - mean) ** 2, 0).sum(axis=0, dtype=np.float64) / count
    # Below this it is rounding.
    spread = np.where(square > 1e-9, np.sqrt(square), 1.0)
    return mean.astype(np.float32), spread.astype(np.float32)


def _standardised(points: Features, mean: Features, spread: Features) -> Features:
    out: Features = np.nan_to_num((points - mean) / spread, copy=False, nan=0.0)
    return out


def _spread(points: Features, k: int) -> Features:
    """Start from k distinct points evenly spread by frequency."""
    distinct = np.unique(points, axis=0)
    at = np.linspace(0, len(distinct) - 1, k).round().astype(np.int64)
    out: Features = distinct[at]
    return out
