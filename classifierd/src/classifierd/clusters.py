"""Chunks of the device grouped by how often they are overwritten, beside the device's average.

The source's own idea (Vishwakarma 2019, future work). Shown in the log beside the life table,
which places better: lifetimes within a chunk are of two kinds as soon as a log lives in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from classifierd.classes import Floats

# K-means learns from no more chunks than this, evenly drawn; all are then assigned.
_SAMPLE = 1 << 16


@dataclass(frozen=True)
class ChunkClass:
    """One group of chunks; relative frequency and recency are geometric means."""

    identity: int
    chunks: int
    relative: float
    recency_pages: float


class ChunkClusters:
    """K-means on (log2 relative frequency, log2 recency), started where the last one ended.

    The first fit orders the classes by frequency, hottest first; later ones keep their numbers,
    because each centre starts from its own last place.
    """

    def __init__(self, k: int = 4) -> None:
        self.k = k
        self.centres_: Floats = np.zeros((0, 2))
        self.labels_: npt.NDArray[np.int32] = np.zeros(0, np.int32)

    @staticmethod
    def features(relative: Floats, recency_pages: Floats) -> Floats:
        """Two columns; finite whatever comes in."""
        raw = np.column_stack([np.maximum(relative, 2.0**-20), recency_pages + 1.0])
        clean = np.nan_to_num(raw, nan=1.0, posinf=2.0**40, neginf=1.0)
        out: Floats = np.log2(np.maximum(clean, 2.0**-20))
        return out

    def fit(self, relative: Floats, recency_pages: Floats) -> ChunkClusters:
        """Group the chunks. Fewer distinct chunks than classes: fewer classes."""
        points = self.features(relative, recency_pages)
        sample = points[:: len(points) // _SAMPLE + 1]
        k = min(self.k, len(np.unique(sample, axis=0)))
        if k == 0:
            self.labels_ = np.zeros(0, np.int32)
            return self
        warm = len(self.centres_) == k
        start = self.centres_ if warm else _spread(sample, k)
        model = KMeans(k, init=start, n_init=1, max_iter=50).fit(sample)
        self.centres_, self.labels_ = model.cluster_centers_, model.predict(points)
        return self

    def classes(self) -> list[ChunkClass]:
        """What each class holds now."""
        counts = np.bincount(self.labels_, minlength=len(self.centres_))
        return [
            ChunkClass(i, int(counts[i]), float(2.0**f), float(2.0**r))
            for i, (f, r) in enumerate(self.centres_)
        ]


def _spread(points: Floats, k: int) -> Floats:
    """Start from k distinct points evenly spread by frequency, hottest first."""
    distinct = np.unique(points, axis=0)[::-1]
    at = np.linspace(0, len(distinct) - 1, k).round().astype(np.int64)
    out: Floats = distinct[at]
    return out
