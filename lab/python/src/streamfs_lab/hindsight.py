"""An oracle that knows how long other writes like this one live, and no death of the write itself.

A prediction is a leave-one-out mean: the mean log2 lifetime of the other writes of the same kind,
future ones included. A kind is the page, its place in the request, the age of the overwritten data
and the vStream. A write that is alone in its kind has the mean of the page's other writes. A page
that is written once has no prediction and is placed with the data that lives longest, as data of
unknown lifetime is on a mount.

This is an estimate of what averages can tell, not a bound. A model may also see recent writes
around a page. The mean of few writes errs away from the write itself: where a kind has a short and
a long life, each gets the other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.classes import Floats
from classifierd.records import KIND_TRIM, pages_one_by_one
from streamfs_lab.policies import Tags, Workload

# Edges between classes, log2 of what is live: thresholds as the oracle's, and even ones.
_EDGES = ((-9, -7, -5, -3, -2, -1), (-5, -4, -3, -2, -1, 0, 1))
_LIVES_ON = 4  # pages that outlive the trace live at least so many times the live pages


def others_lifetimes(workload: Workload) -> Floats:
    """Leave-one-out mean of the log2 lifetime in pages, f64[pages]; inf where no mean exists."""
    records = workload.records
    writes = records[records["kind"] != KIND_TRIM]
    row, place = pages_one_by_one(writes["pages"].astype(np.int64))
    page = writes["block"][row].astype(np.int64) + place
    offset = writes["request_offset"][row].astype(np.int64) + place
    to_end = np.minimum(writes["request_pages"][row].astype(np.int64) - 1 - offset, 3)
    kind = ((page * 2 + np.minimum(offset, 1)) * 4 + to_end) * 8 + writes["age"][row]
    kind = (kind << 16) + writes["vstream"][row]
    log2_life = np.log2(_lifetimes(workload))
    of_kind = _mean_of_others(kind, log2_life)
    return np.where(np.isfinite(of_kind), of_kind, _mean_of_others(page, log2_life))


def _mean_of_others(group: npt.NDArray[np.int64], values: Floats) -> Floats:
    """The mean of the other values of each value's group, inf where the group has no other."""
    _, group = np.unique(group, return_inverse=True)
    others = np.bincount(group)[group] - 1
    sums = np.bincount(group, weights=values)[group] - values
    mean: Floats = np.divide(sums, others, out=np.full(len(values), np.inf), where=others > 0)
    return mean


def _lifetimes(workload: Workload) -> Floats:
    """Pages written until the death of each page written, f64[pages]."""
    lifetimes = _core.PageTrace(workload.records).lifetimes().astype(np.float64)
    left = np.arange(len(lifetimes), 0, -1, dtype=np.float64)
    lives_on = np.maximum(2 * left, _LIVES_ON * workload.live_pages)
    return np.where(lifetimes > left, lives_on, np.maximum(lifetimes, 1.0))


def others_tags(workload: Workload) -> list[Tags]:
    """The pStream of each page written, u8[pages]: by volume's shares, and by _EDGES."""
    mean = others_lifetimes(workload)
    known = mean[np.isfinite(mean)]
    if len(known) == 0:
        return [np.full(len(mean), workload.pstreams - 1, np.uint8)]
    shares = np.quantile(known, np.arange(1, workload.pstreams) / workload.pstreams)
    fixed = [np.log2(workload.live_pages) + np.array(edges) for edges in _EDGES]
    return [_classes(mean, edges[: workload.pstreams - 1]) for edges in (shares, *fixed)]


def _classes(values: Floats, edges: npt.NDArray[np.float64]) -> Tags:
    return np.searchsorted(edges, values, side="right").astype(np.uint8)
