"""pytest plugin of the gate: skips for want of FUSE fail, and the others are counted.

A test that gives FUSE as its reason to skip fails where /dev/fuse exists. Every other skip adds a
line to the file that STREAMFS_SKIPPED names, if it names one.
"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test skipped, without the place in the file."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ").replace("\n", " ")


def fail_if_fuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip that gives FUSE as its reason into a failure."""
    if not report.skipped or not Path("/dev/fuse").exists():
        return
    reason = reason_of(report)
    if "fuse" in reason.lower():
        report.outcome = "failed"
        report.longrepr = f"{reason} (but /dev/fuse is there: broken is not absent)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Look at each test."""
    report = yield
    fail_if_fuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Look at each module, which may skip as a whole."""
    report = yield
    fail_if_fuse_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count what was skipped."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped and "STREAMFS_SKIPPED" in os.environ:
        with Path(os.environ["STREAMFS_SKIPPED"]).open("a") as file:
            file.writelines(f"{report.nodeid}: {reason_of(report)}\n" for report in skipped)
