"""bench/learning: when a WAF counts as settled, and what its learner is fed."""

import numpy as np
import pytest
from bench.learner import (
    AHEAD,
    SOON,
    STREAMS,
    WINDOW,
    core_share,
    disturbed,
    knowledge,
    pages_of,
    settled,
    shifting,
    waf_by_window,
)

LIVE = 8192


def test_settled_is_when_what_follows_is_within_a_tenth_of_steady() -> None:
    waf = np.array([5.0] * 10 + [1.0] * 90)
    assert settled(waf, 1.0) == pytest.approx(10 * WINDOW)
    assert settled(waf[10:], 1.0) == 0
    waf[12] = 5.0
    assert settled(waf, 1.0) == pytest.approx(13 * WINDOW), "a hump that is still to come counts"
    assert settled(waf[: AHEAD + 5], 1.0) == pytest.approx((AHEAD + 5) * WINDOW), "never"


def test_disturbed_is_until_the_last_hump() -> None:
    waf = np.ones(100)
    assert disturbed(waf, 1.0) == 0
    waf[[0, 40]] = 5.0
    assert disturbed(waf, 1.0) == pytest.approx((40 + SOON) * WINDOW)


def test_windows_together_say_what_the_device_copied() -> None:
    records = shifting(LIVE, phases=2, capacities=2, seed=1)
    assert pages_of(records) == 5 * LIVE
    hot = records["block"][LIVE : 3 * LIVE] < LIVE // 10
    assert hot.mean() == pytest.approx(0.91, abs=0.02)
    waf = waf_by_window(records, np.full(5 * LIVE, STREAMS - 1, np.uint8), LIVE)
    assert len(waf) == pytest.approx(5 / WINDOW, rel=0.02)
    assert waf[: int(1 / WINDOW)] == pytest.approx(1.0), "an empty device copies nothing"
    assert waf[int(2 / WINDOW) :].mean() > 1.5


@pytest.mark.parametrize("candidates", [("life-table",), ("life-table", "nosep")])
def test_what_is_fed_is_learned_and_its_time_is_taken(candidates: tuple[str, ...]) -> None:
    known = knowledge(LIVE, LIVE, candidates)
    assert 0 < core_share(known, LIVE, request_pages=32, pages=6400) < 10
    assert known.learner.life.clock_pages == 6400 + 2 * LIVE
    assert known.learner.life.epochs > 2
