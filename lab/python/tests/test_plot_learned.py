"""Plots of a trace: the values drawn are right, and the file is the one that was named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from classifierd.command_line import EXIT_USAGE
from streamfs_lab import plot
from streamfs_lab.cli import main
from streamfs_lab.plot import Learned
from streamfs_lab.replay import workload_of
from streamfs_lab.workloads import WORKLOADS


def made(age: list[int], watched: list[int], score: list[int]) -> Learned:
    count = len(age)
    return Learned(
        np.array(age),
        np.array(watched),
        np.zeros(count, np.int64),
        {"m": np.array(score)},
        np.log2(np.full(count, 100.0)),
        [100],
    )


def test_the_order_of_scores_is_all_that_counts() -> None:
    sure = np.array([False, False, True, True])
    assert plot.auc(np.array([1, 2, 3, 9]), sure) == 1
    assert plot.auc(np.array([9, 3, 2, 1]), sure) == 0
    assert plot.auc(np.array([5, 5, 5, 5]), sure) == 0.5
    assert plot.auc(np.array([1, 3, 2, 4]), sure) == 0.75
    assert np.isnan(plot.auc(np.array([1, 2]), np.array([True, True])))


def test_of_an_age_only_what_was_watched_so_long_counts() -> None:
    found = made([50, 200, 150, 60, 10], [300, 250, 150, 60, 40], [1, 2, 3, 9, 9])
    assert plot.decided(found, 100).tolist() == [True, True, True, False, False]
    assert plot.aucs(found, "m").tolist() == [1.0]


def test_an_honest_expectation_lies_on_the_diagonal() -> None:
    rng = np.random.default_rng(5)
    age = rng.exponential(100, 20_000).astype(int).tolist()
    said, seen = plot.calibration(made(age, [1000] * len(age), [0] * len(age)), 100)
    assert said == pytest.approx([np.exp(-1)])
    assert seen == pytest.approx(said, abs=0.02)


def test_learning_a_mix_ranks_its_lifetimes(tmp_path: Path) -> None:
    raw, vstreams = WORKLOADS["hot-cold"](40_000, 1, 4_096)
    found = plot.learned(workload_of(raw, vstreams, 4))
    middle = found.landmarks[len(found.landmarks) // 2]
    assert plot.aucs(found, "life table")[found.landmarks.index(middle)] > 0.6
    medians = [values[2] for values in plot.quantiles(found).values()]
    assert medians[-1] > medians[0]
    plot.draw_learned(found, tmp_path / "a.png", "a mix")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_name_that_is_no_pictures_is_refused(tmp_path: Path) -> None:
    assert main(["plot", "hot-cold", "-o", str(tmp_path / "a.gif")]) == EXIT_USAGE
    assert list(tmp_path.iterdir()) == []


def test_without_something_to_plot_it_is_a_usage_error(tmp_path: Path) -> None:
    for words in (["plot", "-o", str(tmp_path / "x")], ["plot", "hot-cold"]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == EXIT_USAGE
