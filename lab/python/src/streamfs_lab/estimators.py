"""The daemon's life table and logistic model as scikit-learn estimators.

Rows are writes: numbers that are rounded and taken as categories. Targets are log2 lifetimes in
pages written. The daemon and the replay use _core's classes, which take records; these serve
comparisons with other estimators.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from classifierd import _core
from classifierd.classes import Floats
from streamfs_lab import _lab
from streamfs_lab.validation import validate_data

Rows = npt.NDArray[np.int64]

_VALUE_MAX = 2.0**40


def _categories(X: npt.ArrayLike) -> Rows:
    return np.rint(np.clip(np.asarray(X, np.float64), -_VALUE_MAX, _VALUE_MAX)).astype(np.int64)


def _hashed(columns: Rows, seed: int) -> npt.NDArray[np.uint64]:
    """Hash all columns of each row to one number (splitmix64's finalizer)."""
    out = np.full(len(columns), seed + 1, np.uint64)
    for column in columns.T:
        out = (out ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        out = (out ^ (out >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        out ^= out >> np.uint64(31)
    return out


class _Lifetimes(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Common to both: how rows and targets are checked."""

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, **more: Any) -> _Lifetimes:
        """Learn anew from rows [n, columns] and log2 lifetimes [n]; see partial_fit."""
        self._forget()
        return self.partial_fit(X, y, **more)

    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        alive: npt.ArrayLike | None = None,
    ) -> _Lifetimes:
        """Learn from more rows. Where `alive` [n] is true, y is the log2 age of a live page.

        Raises ValueError if a value is not finite or the number of columns differs.
        """
        first = not hasattr(self, "n_features_in_")
        rows, lives = validate_data(self, X, y, reset=first, y_numeric=True)
        weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        living = np.zeros(len(lives), np.bool_) if alive is None else np.asarray(alive, np.bool_)
        self._learn(_categories(rows), np.asarray(lives, np.float64), weight, living)
        return self

    def _rows(self, X: npt.ArrayLike) -> Rows:
        check_is_fitted(self)
        return _categories(validate_data(self, X, reset=False))

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _learn(self, rows: Rows, y: Floats, weight: Floats, alive: npt.NDArray[np.bool_]) -> None:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        """Return the tags: categories make poor regressors of numbers."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _more_tags(self) -> dict[str, bool]:
        """Return the same tags to scikit-learn below 1.6."""
        return {"poor_score": True}


class LifeTableRegressor(_Lifetimes):
    """Mean log2 lifetime of a context in a shape, by survival with back-off (_core.Backoff).

    The last column is the shape, the others together are the context. Kaplan and Meier 1958 by
    bins of log2 age, in which those alive count for the ages they have passed.
    """

    deaths_: Floats  # [cells, AGE_BINS], as entered_
    entered_: Floats

    def __init__(self, kappa: float = 512.0, decay: float = 1.0) -> None:
        self.kappa = kappa
        self.decay = decay  # of earlier evidence, at each partial_fit

    def _cells(self, rows: Rows) -> npt.NDArray[np.uint32]:
        context = _hashed(rows[:, :-1], 0) % np.uint64(_core.VSTREAMS)
        shape = rows[:, -1].astype(np.uint64) % np.uint64(_core.SHAPES)
        return (context * np.uint64(_core.SHAPES) + shape).astype(np.uint32)

    def _learn(self, rows: Rows, y: Floats, weight: Floats, alive: npt.NDArray[np.bool_]) -> None:
        old = getattr(self, "cells_", np.zeros(0, np.uint32))
        cells = np.union1d(old, here := self._cells(rows)).astype(np.uint32)
        bins = np.clip(np.floor(y), 0, _core.AGE_BINS - 1).astype(np.int64)
        ended = np.zeros((2, len(cells), _core.AGE_BINS))
        np.add.at(ended, (alive.astype(np.int64), np.searchsorted(cells, here), bins), weight)
        deaths, left = ended
        passed = ended[:, :, ::-1].cumsum(axis=2)[:, :, ::-1].sum(axis=0)
        entered = (
            passed - left
        )  # The last age bin of a live page is left out: its end is not known.
        if len(old):
            at = np.searchsorted(cells, old)
            deaths[at] += self.decay * self.deaths_
            entered[at] += self.decay * self.entered_
        self.cells_, self.deaths_, self.entered_ = cells, deaths, entered

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return log2 lifetimes [n]."""
        cells = self._cells(self._rows(X))
        table = _core.LifeTable(1)
        table.restore(self.cells_, self.entered_.max(axis=1), self.deaths_, self.entered_)
        shape = _core.FEATURES["shape"] | _core.FEATURES["chunk"]
        levels = [shape, _core.FEATURES["vstream"]]
        backoff = _core.Backoff([*levels, levels[0] | levels[1]], self.kappa)
        backoff.fit(table, np.zeros((0, 3), np.uint32))
        vstreams, row = np.unique(cells // _core.SHAPES, return_inverse=True)
        mean, _ = backoff.predict(vstreams.astype(np.uint16))
        out: Floats = mean[row, cells % _core.SHAPES]
        return out


class LogisticRegressor(_Lifetimes):
    """Log2 lifetime to be expected, by _core's online hashed logistic model of landmarks.

    Tokens are the columns, alone and by pairs while there is room. The order of
    predictions is reliable, their distances are not (learning/logistic.h). Cannot be pickled: its
    weights live in C++.
    """

    def __init__(self, live_pages: int = 1 << 16, passes: int = 1) -> None:
        self.live_pages = live_pages  # sets the landmarks
        self.passes = passes

    def _tokens(self, rows: Rows) -> npt.NDArray[np.uint32]:
        columns = rows.shape[1]
        pairs = [(i, j) for i in range(columns) for j in range(i)]
        wanted: list[list[int]] = [[], *([i] for i in range(columns)), *map(list, pairs)]
        out = np.empty((len(rows), _lab.TOKENS), np.uint32)
        for at in range(_lab.TOKENS):
            token = wanted[at] if at < len(wanted) else []
            out[:, at] = _hashed(rows[:, token], at) % np.uint64(_lab.TOKEN_VALUES)
        return out

    def _learn(self, rows: Rows, y: Floats, weight: Floats, alive: npt.NDArray[np.bool_]) -> None:
        if not hasattr(self, "model_"):
            self.model_ = _lab.Logistic()
            ages = _core.Predictor(1, self.live_pages, [1]).landmarks
            self.landmarks_ = np.log2(np.array(ages, np.float64))
        tokens = self._tokens(rows)
        # A write of weight w is trained w times.
        times = np.rint(weight).astype(np.int64)
        for _ in range(self.passes):
            for j, age in enumerate(self.landmarks_):
                known = np.flatnonzero(~alive | (y >= age))
                told = np.repeat(known, times[known])
                self.model_.train(j, tokens[told], (y[told] >= age).astype(np.uint8))

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return log2 lifetimes [n]: steps between landmarks times the chance to outlive each."""
        tokens = self._tokens(self._rows(X))
        scores = self.model_.score(tokens).astype(np.float64)
        lives = np.minimum.accumulate(1 / (1 + np.exp(-scores)), axis=1)
        return cast(Floats, lives @ np.diff(self.landmarks_, prepend=0.0))
