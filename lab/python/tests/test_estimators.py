"""Ours and scikit-learn's behind one interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from streamfs_lab.estimators import LifeTableRegressor, LogisticRegressor
from streamfs_lab.ordered_clusters import CLUSTERERS, OrderedClusters

Rows = npt.NDArray[np.int64]
OURS = [LifeTableRegressor(kappa=8.0), LogisticRegressor(live_pages=4096)]


def writes(count: int, seed: int) -> tuple[Rows, npt.NDArray[np.float64]]:
    """Rows of four contexts and three shapes; each has a say in the log2 lifetime."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, 4, count), rng.integers(0, 3, count)])
    return rows, 3.0 * rows[:, 0] + 1.5 * rows[:, 1] + rng.normal(0, 0.5, count)


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [*OURS, *(OrderedClusters(name) for name in CLUSTERERS)]
)
def test_scikit_learns_rules_are_kept(estimator: Any, check: Any) -> None:
    if isinstance(estimator, LogisticRegressor) and "pickle" in check.func.__name__:
        pytest.xfail("the weights live in C++")
    check(estimator)


@pytest.mark.parametrize("estimator", OURS, ids=lambda e: type(e).__name__)
def test_lifetimes_are_learned_at_once_or_in_parts(estimator: Any) -> None:
    rows, lives = writes(20_000, 1)
    later, truth = writes(2000, 2)
    whole = clone(estimator).fit(rows, lives).predict(later)
    parts = clone(estimator)
    for at in range(0, len(rows), 5000):
        parts.partial_fit(rows[at : at + 5000], lives[at : at + 5000])
    assert parts.predict(later) == pytest.approx(whole, abs=0.5)
    assert np.corrcoef(whole, truth)[0, 1] > 0.95


@pytest.mark.parametrize("estimator", OURS, ids=lambda e: type(e).__name__)
def test_what_is_still_alive_is_no_short_life(estimator: Any) -> None:
    rows, lives = writes(20_000, 3)
    age = np.random.default_rng(3).uniform(2, 12, len(lives))
    alive = lives > age
    seen = np.minimum(lives, age)
    blind = clone(estimator).fit(rows, seen).predict(rows)
    aware = clone(estimator).fit(rows, seen, alive=alive).predict(rows)
    assert np.abs(aware - lives).mean() < 0.8 * np.abs(blind - lives).mean()


@pytest.mark.parametrize("name", CLUSTERERS)
def test_clusters_are_in_the_order_of_their_lifetimes(name: str) -> None:
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 3, 3000)
    lives = np.array([9.0, 2.0, 15.0])[kind] + rng.normal(0, 1, 3000)
    places = np.array([[0, 9], [5, 0], [9, 9]])[kind] + rng.normal(0, 0.5, (3000, 2))
    clusters = OrderedClusters(name, 3).fit(places, lives)
    assert (clusters.labels_ == np.array([1, 0, 2])[kind]).mean() > 0.99
    assert (clusters.predict(places) == clusters.labels_).all()


def test_an_unknown_clusterer_is_refused() -> None:
    with pytest.raises(ValueError, match="kmeans, minibatch, gmm"):
        OrderedClusters("means").fit(np.zeros((3, 1)))
