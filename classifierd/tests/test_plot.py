"""Plots: what is drawn is right, and drawn into the file that was named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from classifierd import plot
from classifierd.cli import EXIT_NO_DEVICE, EXIT_USAGE, main
from classifierd.plot import Learned
from classifierd.replay import workload_of
from classifierd.workloads import WORKLOADS
from fake_filesystem import FakeFilesystem, ModelArea, Ring


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


def test_a_mounted_filesystems_lifetimes_are_drawn_with_their_limits(tmp_path: Path) -> None:
    fake = FakeFilesystem(tmp_path / "socket", Ring(), ModelArea())
    words = ["plot", "--socket", str(fake.path), "-o", str(tmp_path / "b.png")]
    limits = {"lifetime_bytes": 2048, "lifetime_low_bytes": 1000, "lifetime_high_bytes": 9000}
    try:
        fake.streams = [{"vstream": 1, "lifetime_bytes": 0}]
        assert main(words) == EXIT_USAGE
        fake.streams += [{"vstream": 2, "name": "wal", "pstream": 3, **limits}]
        assert main(words) == 0
    finally:
        fake.close()
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    [one] = plot.measured(fake.streams)
    assert one == plot.Measured("2 wal", 3, 2048, 1000, 9000, 0)


def test_of_many_vstreams_the_thirty_that_wrote_most_are_drawn() -> None:
    limits = {"lifetime_bytes": 2, "lifetime_low_bytes": 1, "lifetime_high_bytes": 3}
    rows = [{"vstream": n, "written_bytes": n, **limits} for n in range(1, 101)]
    assert {each.written for each in plot.measured(rows)} == set(range(71, 101))


def test_a_name_that_is_no_pictures_and_a_directory_without_a_mount_are_refused(
    tmp_path: Path,
) -> None:
    assert main(["plot", "hot-cold", "-o", str(tmp_path / "a.gif")]) == EXIT_USAGE
    assert main(["plot", str(tmp_path), "-o", str(tmp_path / "a.png")]) == EXIT_NO_DEVICE
    assert list(tmp_path.iterdir()) == []


def test_without_something_to_plot_it_is_a_usage_error(tmp_path: Path) -> None:
    for words in (["plot", "-o", str(tmp_path / "x")], ["plot", "hot-cold"]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == EXIT_USAGE
