"""Clusters of writes as classes in the order of their lifetimes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, column_or_1d

from streamfs_lab.validation import validate_data

Labels = npt.NDArray[np.int64]

CLUSTERERS: dict[str, Callable[[int, int | None], Any]] = {
    "kmeans": lambda k, seed: KMeans(k, n_init=1, random_state=seed),
    "minibatch": lambda k, seed: MiniBatchKMeans(k, n_init=1, batch_size=4096, random_state=seed),
    "gmm": lambda k, seed: GaussianMixture(
        k, covariance_type="diag", reg_covar=1e-3, max_iter=200, tol=1e-2, random_state=seed
    ),
}


class OrderedClusters(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters what is written, standardised; class 0 is the cluster whose data dies first.

    The lifetimes that put them in order are `y` of fit(), or the first column where there is none.
    Fewer distinct rows than clusters: fewer clusters.
    """

    def __init__(
        self, clusterer: str = "kmeans", n_clusters: int = 8, random_state: int | None = 0
    ) -> None:
        self.clusterer = clusterer
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> OrderedClusters:
        """Cluster rows [n, columns], ordered by log2 lifetimes [n]. Raises ValueError."""
        if self.clusterer not in CLUSTERERS:
            msg = f"clusterer is one of {', '.join(CLUSTERERS)}, not {self.clusterer}"
            raise ValueError(msg)
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        by = rows[:, 0] if y is None else column_or_1d(y).astype(np.float64)
        self.scaler_ = StandardScaler().fit(rows)
        points = self.scaler_.transform(rows)
        k = min(self.n_clusters, len(np.unique(points, axis=0)))
        self.model_ = CLUSTERERS[self.clusterer](k, self.random_state).fit(points)
        found = self.model_.predict(points)
        count = np.bincount(found, minlength=k)
        mean = np.bincount(found, weights=by, minlength=k) / np.maximum(count, 1)
        self.rank_ = np.argsort(np.argsort(np.where(count > 0, mean, np.inf), kind="stable"))
        self.labels_: Labels = self.rank_[found]
        return self

    def predict(self, X: npt.ArrayLike) -> Labels:
        """Return classes [n], 0 for what dies first."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        out: Labels = self.rank_[self.model_.predict(self.scaler_.transform(rows))]
        return out
