"""scikit-learn's estimators as placements of the same writes.

Each estimator gets the features of the logistic model (_lab.Views). It is fitted at the end of an
epoch on writes of the past, and tags the next epoch: strictly causal. It is fitted only on pages
written at least a horizon ago, dead or not, so that long-lived pages are not under-represented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from classifierd import _core
from classifierd.classes import Floats, spread_edges, squash
from streamfs_lab import _lab
from streamfs_lab.ordered_clusters import CLUSTERERS, OrderedClusters
from streamfs_lab.policies import Tags, Workload, epochs

Rows = npt.NDArray[np.float32]

# Upper bound on the writes of one fit, drawn evenly.
_WRITES_MAX = 20_000


class Predicts(Protocol):
    """An estimator that turns rows of writes into classes."""

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return a class or a lifetime a row."""


# fit(rows, lifetimes on squash()'s axis, number of classes) returns an estimator.
Fit = Callable[[Rows, Floats, int], Predicts]


class _Cut:
    """A regressor whose lifetimes are cut into classes."""

    def __init__(self, model: Predicts, edges: Floats) -> None:
        self._model, self._edges = model, edges

    def predict(self, X: Rows) -> npt.NDArray[np.int64]:
        return np.searchsorted(self._edges, self._model.predict(X), side="right")


def _clusters(name: str) -> Fit:
    return lambda rows, lives, k: OrderedClusters(name, k).fit(rows, lives)


def _sgd(rows: Rows, lives: Floats, k: int) -> Predicts:
    classes = np.searchsorted(_edges(lives, k), lives, side="right")
    if len(np.unique(classes)) < 2:  # It refuses to learn of one class only.
        return _Constant(int(classes[0]))
    encoder = OneHotEncoder(handle_unknown="ignore", dtype=np.float32)
    model = SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=5, tol=None, random_state=0)
    return _Whole(make_pipeline(encoder, model).fit(np.floor(rows), classes))


def _boosting(rows: Rows, lives: Floats, k: int) -> Predicts:
    model = HistGradientBoostingRegressor(max_iter=40, early_stopping=False, random_state=0)
    return _Cut(model.fit(rows, lives), _edges(lives, k))


def _edges(lives: Floats, k: int) -> Floats:
    return spread_edges(lives, np.ones(len(lives)), k)


class _Constant:
    def __init__(self, cls: int) -> None:
        self._cls = cls

    def predict(self, X: Rows) -> npt.NDArray[np.int64]:
        return np.full(len(X), self._cls)


class _Whole:
    """Cuts numbers to integers, because they are categories."""

    def __init__(self, model: Predicts) -> None:
        self._model = model

    def predict(self, X: Rows) -> npt.NDArray[Any]:
        return self._model.predict(np.floor(X))


class _Past:
    """A sample of the writes so far, and how long they had lived by then."""

    def __init__(self, live_pages: int) -> None:
        self._horizon_max = 2 * live_pages
        self._one_in = self._horizon_max // _WRITES_MAX + 1
        self._rows: list[Rows] = []
        self._written = 0

    def add(self, rows: Rows) -> None:
        """Add the next writes."""
        self._rows.append(rows[-self._written % self._one_in :: self._one_in])
        self._written += len(rows)

    def known(self, lifetimes: npt.NDArray[np.uint64]) -> tuple[Rows, Floats]:
        """Return rows and log2 lifetimes, of pages that were written a horizon ago.

        `lifetimes` covers the whole trace. Lifetimes are cut off at the horizon, so no event after
        the current write changes the result.
        """
        horizon = min(self._written // 2, self._horizon_max)
        rows = np.concatenate(self._rows)
        born = np.arange(len(rows)) * self._one_in
        told = (born + horizon <= self._written) & (born + 2 * horizon >= self._written)
        lives = np.minimum(lifetimes[born[told]], np.uint64(horizon)).astype(np.float64)
        return rows[told], np.log2(lives + 1)


def tags_by(workload: Workload, fit: Fit) -> Tags:
    """Return the class of each page written, by an estimator fitted on earlier epochs."""
    views = _lab.Views(workload.end, workload.live_pages)
    lifetimes = _core.PageTrace(workload.records).lifetimes()
    past, model = _Past(workload.live_pages), None
    out = [np.zeros(0, np.uint8)]
    for part in epochs(workload.records, max(workload.live_pages // 2, 1024)):
        rows = views.feed(part)
        past.add(rows)
        if model is None or len(rows) == 0:
            out.append(np.zeros(len(rows), np.uint8))
        else:
            out.append(model.predict(rows).astype(np.uint8))
        known, lives = past.known(lifetimes)
        if len(known) > 1:
            model = fit(known, squash(lives, workload.live_pages), workload.pstreams)
    return np.concatenate(out)


_FITS: dict[str, Fit] = {
    **{f"sk-{name}": _clusters(name) for name in CLUSTERERS},
    "sk-sgd": _sgd,
    "sk-histgb": _boosting,
}
RIVALS = tuple(_FITS)


def rival(name: str) -> Callable[[Workload], Tags]:
    """Return the policy of that name, one of RIVALS."""
    return lambda workload: tags_by(workload, _FITS[name])
