"""Chunks of the device grouped by how what lies there dies, beside the rest of the device.

The source's own idea (Vishwakarma 2019, future work). Shown in the log beside the life table,
which places better: lifetimes within a chunk are of two kinds as soon as a log lives in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from classifierd import _core

Features = npt.NDArray[np.float32]

# K-means learns from no more chunks than this, evenly drawn; all are then assigned.
_SAMPLE = 1 << 16
# A new grouping waits until so many pages were written, or as many as there are chunks.
_PAUSE_PAGES = 1 << 18
# What is counted or timed is compared as log2, and is between these.
_LOGGED = [_core.CHUNK_FEATURES.index(n) for n in ("relative", "recency_pages", "interval_pages")]
_LEAST, _MOST = np.float32(2.0**-10), np.float32(2.0**40)


@dataclass(frozen=True)
class ChunkClass:
    """One group of chunks and its centre; ``features`` by the names of CHUNK_FEATURES."""

    identity: int
    chunks: int
    features: dict[str, float]


class ChunkClusters:
    """K-means on all of CHUNK_FEATURES, standardised, started where the last one ended.

    The first fit orders the classes by frequency, hottest first; later ones keep their numbers,
    because each centre starts from its own last place. A feature that is unknown for a chunk (NaN)
    counts as the average; a feature that is the same everywhere counts for nothing.
    """

    def __init__(self, k: int = 4) -> None:
        self.k = k
        self.centres_: Features = np.zeros((0, len(_core.CHUNK_FEATURES)), np.float32)
        self.labels_: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._fitted_pages: int | None = None

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

    def fit_when_due(self, counter: _core.ChunkCounter, clock_pages: int) -> None:
        """Group what is counted, not more often than is worth it: a million take half a second."""
        pause = max(len(counter), _PAUSE_PAGES)
        if self._fitted_pages is None or clock_pages - self._fitted_pages >= pause:
            self.fit(counter.view()[1])
            # With nothing to group yet, the next epoch may have more.
            self._fitted_pages = clock_pages if len(self.labels_) else None

    def classes(self) -> list[ChunkClass]:
        """The classes, each with the number of its chunks now."""
        counts = np.bincount(self.labels_, minlength=len(self.centres_))
        centres = self.centres_.astype(np.float64)
        centres[:, _LOGGED] = np.exp2(centres[:, _LOGGED])
        return [
            ChunkClass(i, int(counts[i]), dict(zip(_core.CHUNK_FEATURES, row, strict=True)))
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
