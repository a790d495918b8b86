"""The demo's figures: what makes a run void, and how the gap is counted."""

import subprocess
import sys
from pathlib import Path

import pytest
from bench.accounting import bytes_asked
from bench.demo.report import Report
from bench.emulated.run import Outcome
from tests.bench.made import REPLAYS, outcome


def report(*outcomes: Outcome) -> Report:
    return Report(list(outcomes), REPLAYS)


def test_gap_is_counted_from_streams_off_and_from_nosep_to_the_oracle() -> None:
    hints = outcome("hints", 1.1)
    both = report(outcome("off", 1.5), hints)
    assert both.gap_closed_from_off(hints) == pytest.approx(0.8)
    assert both.gap_closed(hints) == pytest.approx(0.9)
    assert not both.void()
    assert not both.missed()


def test_a_gap_that_stays_open_is_shown_as_missed_and_not_as_void() -> None:
    wide = report(outcome("off", 1.5), outcome("learned", 1.4))
    assert wide.missed()
    assert not wide.void()


@pytest.mark.parametrize("spare", [0.064, 0.076])
def test_spare_outside_the_range_makes_the_run_void(spare: float) -> None:
    assert report(outcome("off", 1.5, spare=spare)).void()


def test_a_control_with_nothing_to_avoid_makes_the_run_void() -> None:
    assert report(outcome("ext4", 1.19)).void()
    assert not report(outcome("ext4", 1.21)).void()


def test_bytes_of_dead_grandchildren_are_counted(tmp_path: Path) -> None:
    writer = f"open({str(tmp_path / 'f')!r}, 'wb', 0).write(bytes(1_000_000))"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {writer!r}])"
    before = bytes_asked()
    subprocess.run([sys.executable, "-c", nested], check=True)
    assert 1_000_000 <= bytes_asked() - before < 1_100_000
