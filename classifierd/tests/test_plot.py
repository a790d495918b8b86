"""Plots: what is drawn is right, and drawn into the file that was named."""

from __future__ import annotations

from pathlib import Path

import pytest

from classifierd import plot
from classifierd.cli import main
from classifierd.command_line import EXIT_NO_DEVICE, EXIT_USAGE
from fake_filesystem import FakeFilesystem, ModelArea, Ring


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
    assert main(["plot", str(tmp_path), "-o", str(tmp_path / "a.gif")]) == EXIT_USAGE
    assert main(["plot", str(tmp_path), "-o", str(tmp_path / "a.png")]) == EXIT_NO_DEVICE
    assert list(tmp_path.iterdir()) == []


def test_without_something_to_plot_it_is_a_usage_error(tmp_path: Path) -> None:
    for words in (["plot", "-o", str(tmp_path / "x")], ["plot", str(tmp_path)]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == EXIT_USAGE
