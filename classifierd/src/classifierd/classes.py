"""From lifetimes to classes: where to cut the axis of lifetime into as many as a device has.

Values are mean log2 lifetimes in pages, volumes the pages written lately with that value.

Data that dies long before garbage collection comes round costs nothing wherever it lies, so short
lifetimes need not be told apart; long ones must. squash() bends the axis accordingly, and the cuts
are made where they take most from the volume-weighted spread within classes on the bent axis.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

Floats = npt.NDArray[np.float64]

# Values nearer than this die together as far as anyone can tell.
_NEAR_LOG2 = 0.1
# A lifetime with less of the volume than this has no say.
_NO_SHARE = 1e-6
# Old edges stay while the spread within classes is below this multiple of what new ones leave,
# or this many log2 of standard deviation more.
_SAME_DIGITS = 6  # of log2 lifetimes
_SETTLED = 1.25
_SETTLED_LOG2 = 0.1


# Lifetimes below 2^-6 of what is live are dead before they are collected.
_SHORT_LOG2 = 6.0


def squash(values: Floats, live_pages: float) -> Floats:
    """Log2 lifetimes as they are where long, drawn together where far below the live size."""
    out: Floats = np.logaddexp2(0.0, values - (np.log2(live_pages) - _SHORT_LOG2))
    return out


def unsquash(values: Floats, live_pages: float) -> Floats:
    """The inverse of squash(); infinite stays infinite."""
    finite = np.where(np.isfinite(values), values, 1.0)
    raw = np.log2(np.maximum(np.exp2(finite) - 1.0, 2.0**-60))
    return np.where(np.isfinite(values), raw + (np.log2(live_pages) - _SHORT_LOG2), np.inf)


def _atoms(values: Floats, volumes: Floats) -> tuple[Floats, Floats]:
    """Sorted values with their volumes; those within _NEAR_LOG2 of the first of a group are one."""
    keep = volumes > _NO_SHARE * volumes.sum()
    order = np.argsort(values[keep], kind="stable")
    values, volumes = values[keep][order], volumes[keep][order]
    starts: list[int] = []
    while (at := _after(values, starts)) < len(values):
        starts.append(at)
    if not starts:
        return values, volumes
    volume = np.add.reduceat(volumes, starts)
    return np.add.reduceat(values * volumes, starts) / volume, volume


def _after(values: Floats, starts: list[int]) -> int:
    """Where the next group begins: past everything near the first value of the last one."""
    if not starts:
        return 0
    return int(np.searchsorted(values, values[starts[-1]] + _NEAR_LOG2, side="right"))


def quantile_edges(values: Floats, volumes: Floats, k: int) -> Floats:
    """k - 1 ascending edges that give each class an equal share of what is left to share out.

    A single lifetime heavier than a share gets a class of its own and the rest is divided anew;
    classes left over then split those of the greatest spread, so that none stays empty while there
    are lifetimes to tell apart. An edge lies midway between its neighbours. Fewer lifetimes than
    classes: the last edges are infinite.
    """
    mean, volume = _atoms(values, volumes)
    cuts = _quantile_cuts(mean, volume, k)
    while len(cuts) < k - 1:
        cut = _best_split(mean, volume, cuts)
        if cut is None:
            break
        cuts = sorted([*cuts, cut])
    edges = [float(mean[i - 1] + mean[i]) / 2 for i in cuts]
    return np.array(edges + [np.inf] * (k - 1 - len(edges)))


def spread_edges(values: Floats, volumes: Floats, k: int) -> Floats:
    """The k - 1 edges that leave the least spread within classes: one-dimensional K-means, exact.

    By dynamic programming over the sorted lifetimes. Infinite where lifetimes are too few.
    """
    mean, volume = _atoms(values, volumes)
    n = len(mean)
    sums = np.zeros((3, n + 1))
    sums[:, 1:] = np.cumsum([volume, volume * mean, volume * mean**2], axis=1)
    weight, moment, square = sums[:, None, :] - sums[:, :, None]  # of the atoms in [row, column)
    empty = np.tri(n + 1, dtype=np.bool_)
    cost = np.where(empty, np.inf, square - moment**2 / np.where(empty, 1.0, weight))
    best, begins = np.full(n + 1, np.inf), []
    best[0] = 0.0
    for _ in range(min(k, n)):
        total = best[:, None] + cost
        begins.append(total.argmin(axis=0))
        best = total.min(axis=0)
    cuts, end = [], n
    for begin in reversed(begins):
        end = int(begin[end])
        cuts.append(end)
    edges = [float(mean[i - 1] + mean[i]) / 2 for i in sorted(cuts) if i > 0]
    return np.array(edges + [np.inf] * (k - 1 - len(edges)))


def _quantile_cuts(mean: Floats, volume: Floats, k: int) -> list[int]:
    """Indexes of the atoms that begin a class, the first class aside."""
    cuts: list[int] = []
    left, taken, in_class = float(volume.sum()), 0.0, 0.0
    for i in range(len(mean) - 1):
        in_class += float(volume[i])
        share = (left - taken) / (k - len(cuts))
        # Close the class where its volume is nearest to the share.
        full = in_class + float(volume[i + 1]) / 2 >= share
        if full and len(cuts) < k - 1:
            cuts.append(i + 1)
            taken += in_class
            in_class = 0.0
    return cuts


def _best_split(mean: Floats, volume: Floats, cuts: list[int]) -> int | None:
    """Where one more cut takes most from the spread within classes; None where none can."""
    best: tuple[float, int] | None = None
    for low, high in pairwise([0, *cuts, len(mean)]):
        x, w = mean[low:high], volume[low:high]
        if high - low < 2:
            continue
        weight, moment = np.cumsum(w)[:-1], np.cumsum(w * x)[:-1]
        rest, rest_moment = w.sum() - weight, (w * x).sum() - moment
        # Between-class spread: what the cut explains.
        gain = weight * rest / w.sum() * (moment / weight - rest_moment / rest) ** 2
        at = int(gain.argmax())
        if gain[at] > 0 and (best is None or gain[at] > best[0]):
            best = (float(gain[at]), low + at + 1)
    return None if best is None else best[1]


def spread_within(values: Floats, volumes: Floats, edges: Floats) -> float:
    """The volume-weighted variance that the classes leave unexplained."""
    cls = np.searchsorted(edges, values, side="right")
    weight = np.maximum(np.bincount(cls, weights=volumes), 1e-12)
    mean = np.bincount(cls, weights=volumes * values) / weight
    return float((volumes * (values - mean[cls]) ** 2).sum() / max(volumes.sum(), 1e-12))


def weighted_quantiles(values: Floats, volumes: Floats, k: int) -> Floats:
    """The k values in the middle of k equal shares of the volume."""
    order = np.argsort(values, kind="stable")
    middle = np.cumsum(volumes[order]) - volumes[order] / 2
    shares = (np.arange(k) + 0.5) / k * volumes.sum()
    out: Floats = np.interp(shares, middle, values[order])
    return out


def split_widest(centres: Floats, values: Floats, volumes: Floats, k: int) -> Floats:
    """Grow distinct centres to k: the cluster of the greatest spread is cut in two, repeatedly."""
    centres = np.unique(centres)
    distinct = len(np.unique(values))
    while len(centres) < min(k, distinct):
        nearest = np.abs(values[:, None] - centres[None, :]).argmin(axis=1)
        distance = (values - centres[nearest]) ** 2 * volumes
        spread = np.bincount(nearest, weights=distance, minlength=len(centres))
        member = np.flatnonzero(nearest == spread.argmax())
        farthest = member[np.abs(values[member] - centres[spread.argmax()]).argmax()]
        grown = np.unique(np.append(centres, values[farthest]))
        if len(grown) == len(centres):
            break
        centres = grown
    return centres


class LifetimeKMeans:
    """K-means on log2 lifetime, weighted by volume (Yong 2021, algorithm 2 and what it leaves).

    The first centres are volume-weighted quantiles, later ones start where the last epoch's ended,
    so that a class keeps its identity while lifetimes drift. A centre nothing is near to is given
    to the widest cluster.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.centres_: Floats = np.zeros(0)

    def fit(self, values: Floats, volumes: Floats) -> LifetimeKMeans:
        """Learn the centres; keeps the old ones if there is nothing to learn from."""
        keep = volumes > 0
        # Lifetimes that differ by rounding only are one lifetime to K-means as well.
        values, volumes = values[keep].round(_SAME_DIGITS), volumes[keep]
        if len(values) == 0:
            return self
        seeds = self.centres_ if len(self.centres_) else weighted_quantiles(values, volumes, self.k)
        used = np.unique(np.abs(values[:, None] - seeds[None, :]).argmin(axis=1))
        seeds = split_widest(seeds[used], values, volumes, self.k)
        model = KMeans(len(seeds), init=seeds[:, None], n_init=1, max_iter=50)
        model.fit(values[:, None], sample_weight=volumes)
        self.centres_ = np.sort(model.cluster_centers_[:, 0])
        return self

    @property
    def edges_(self) -> Floats:
        """k - 1 ascending edges, midway between centres; infinite where centres are fewer."""
        middle = (self.centres_[1:] + self.centres_[:-1]) / 2
        return np.append(middle, np.full(max(0, self.k - 1 - len(middle)), np.inf))


def settle(old: Floats | None, new: Floats, values: Floats, volumes: Floats) -> Floats:
    """Keep the old edges while they divide today's lifetimes nearly as well as the new ones.

    Moving an edge moves every class above it to another pStream, whose blocks hold older data.
    """
    if old is None or old.shape != new.shape:
        return new
    before, after = spread_within(values, volumes, old), spread_within(values, volumes, new)
    return old if before <= _SETTLED * after + _SETTLED_LOG2**2 else new


def assign(
    values: Floats,
    edges: Floats,
    previous: npt.NDArray[np.uint8] | None = None,
    margin_log2: Floats | float = 0.0,
) -> npt.NDArray[np.uint8]:
    """The class of each value; one within `margin_log2` of its previous class stays there."""
    fresh = np.searchsorted(edges, values, side="right").astype(np.uint8)
    if previous is None or np.all(margin_log2 <= 0):
        return fresh
    low = np.searchsorted(edges, values - margin_log2, side="right")
    high = np.searchsorted(edges, values + margin_log2, side="right")
    stays = (low <= previous) & (previous <= high)
    return np.where(stays, previous, fresh).astype(np.uint8)
