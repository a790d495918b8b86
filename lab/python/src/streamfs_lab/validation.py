"""scikit-learn's check of an estimator's input, under the one name that every version here has.

scikit-learn 1.2 (Debian 12) and 1.4 (Debian 13) have it as a method of BaseEstimator; from 1.6 on
it is a function.
"""

from __future__ import annotations

from typing import Any

import sklearn.utils.validation


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return X, or X and y, as arrays. Raises ValueError for input that `options` do not allow."""
    function = getattr(sklearn.utils.validation, "validate_data", None)
    if function is not None:
        return function(estimator, X, y, **options)
    return estimator._validate_data(X, y, **options)
