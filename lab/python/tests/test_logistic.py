"""_core's online logistic beside scikit-learn's, on the same tokens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score

from streamfs_lab import _lab

FIELDS, VALUES = 6, 12
Tokens = npt.NDArray[np.uint32]


def drawn(writes: int, seed: int) -> tuple[Tokens, npt.NDArray[np.uint8], npt.NDArray[np.float64]]:
    """Writes of a few fields, each of which has a say in how likely it is to live."""
    says = np.random.default_rng(99).normal(0, 1, (FIELDS, VALUES))
    randomness = np.random.default_rng(seed)
    values = randomness.integers(0, VALUES, (writes, FIELDS))
    odds = says[np.arange(FIELDS), values].sum(axis=1)
    lived = (randomness.random(writes) < 1 / (1 + np.exp(-odds))).astype(np.uint8)
    tokens = np.zeros((writes, _lab.TOKENS), np.uint32)
    tokens[:, :FIELDS] = 1 + values + VALUES * np.arange(FIELDS)
    tokens[:, FIELDS:] = 1000 + np.arange(_lab.TOKENS - FIELDS)  # of every write: a bias
    return tokens, lived, odds


def one_hot(tokens: Tokens) -> npt.NDArray[np.float32]:
    """The fields' tokens as scikit-learn wants them, which has a bias of its own."""
    out = np.zeros((len(tokens), 1 + FIELDS * VALUES), np.float32)
    out[np.arange(len(tokens))[:, None], tokens[:, :FIELDS]] = 1
    return out


def test_it_puts_writes_in_the_order_that_scikit_learns_sgd_does() -> None:
    """As well as can be known; how far apart they are is another matter (logistic.h)."""
    tokens, lived, _ = drawn(60_000, 1)
    later, fate, odds = drawn(20_000, 2)
    ours = _lab.Logistic()
    ours.train(3, tokens, lived)
    said = ours.score(later)[:, 3]
    rival = SGDClassifier(loss="log_loss", alpha=1e-5, random_state=0)
    rival.fit(one_hot(tokens), lived)
    theirs = rival.decision_function(one_hot(later))
    best = roc_auc_score(fate, odds)
    assert best > 0.85
    assert roc_auc_score(fate, said) > best - 0.005
    assert roc_auc_score(fate, said) > roc_auc_score(fate, theirs) - 0.005
    assert np.corrcoef(said, theirs)[0, 1] > 0.97


def test_a_landmark_learns_by_itself() -> None:
    """The others still know nothing."""
    tokens, lived, _ = drawn(1000, 1)
    model = _lab.Logistic()
    model.train(5, tokens, lived)
    scores = model.score(tokens)
    assert np.abs(scores[:, 5]).max() > 0.1
    assert not np.delete(scores, 5, axis=1).any()


@pytest.mark.parametrize(
    ("landmark", "tokens", "lived"),
    [
        (16, np.zeros((1, _lab.TOKENS)), [1]),
        (0, np.zeros((1, _lab.TOKENS - 1)), [1]),
        (0, np.zeros((2, _lab.TOKENS)), [1]),
        (0, np.full((1, _lab.TOKENS), _lab.TOKEN_VALUES), [1]),
    ],
)
def test_what_is_no_write_is_refused(
    landmark: int, tokens: npt.NDArray[np.float64], lived: list[int]
) -> None:
    """With a sentence; nothing is learned of it."""
    with pytest.raises(ValueError, match=r"needed|no token"):
        _lab.Logistic().train(landmark, tokens.astype(np.uint32), np.array(lived, np.uint8))
