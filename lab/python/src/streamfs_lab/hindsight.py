"""An oracle that knows mean lifetimes but no single death: the limit of predicting by averages.

It knows how long writes of one kind live on average, future writes included. A kind is the page,
its place in the request and the age of the overwritten data. The true oracle also knows the
deviation of each write, which no prediction from place and shape can. The limit is not strict: a
model may also see recent writes around a page.
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


def mean_lifetimes(workload: Workload) -> Floats:
    """log2 of the lifetime in pages that writes like this one have in the mean, f64[pages]."""
    records = workload.records
    writes = records[records["kind"] != KIND_TRIM]
    row, place = pages_one_by_one(writes["pages"].astype(np.int64))
    page = writes["block"][row].astype(np.int64) + place
    offset = writes["request_offset"][row].astype(np.int64) + place
    to_end = np.minimum(writes["request_pages"][row].astype(np.int64) - 1 - offset, 3)
    kind = ((page * 2 + np.minimum(offset, 1)) * 4 + to_end) * 8 + writes["age"][row]
    _, kind = np.unique((kind << 16) + writes["vstream"][row], return_inverse=True)
    log2_life = np.log2(_lifetimes(workload))
    sums = np.bincount(kind, weights=log2_life)
    mean: Floats = (sums / np.bincount(kind))[kind]
    return mean


def _lifetimes(workload: Workload) -> Floats:
    """Pages written until the death of each page written, f64[pages]."""
    lifetimes = _core.PageTrace(workload.records).lifetimes().astype(np.float64)
    left = np.arange(len(lifetimes), 0, -1, dtype=np.float64)
    lives_on = np.maximum(2 * left, _LIVES_ON * workload.live_pages)
    return np.where(lifetimes > left, lives_on, np.maximum(lifetimes, 1.0))


def mean_tags(workload: Workload) -> list[Tags]:
    """The pStream of each page written, u8[pages]: by volume's shares, and by _EDGES."""
    mean = mean_lifetimes(workload)
    if len(mean) == 0:
        return [np.zeros(0, np.uint8)]
    shares = np.quantile(mean, np.arange(1, workload.pstreams) / workload.pstreams)
    fixed = [np.log2(workload.live_pages) + np.array(edges) for edges in _EDGES]
    return [_classes(mean, edges[: workload.pstreams - 1]) for edges in (shares, *fixed)]


def _classes(values: Floats, edges: npt.NDArray[np.float64]) -> Tags:
    return np.searchsorted(edges, values, side="right").astype(np.uint8)
