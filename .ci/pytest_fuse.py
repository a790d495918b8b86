"""pytest plugin: where there is a /dev/fuse, a test that skips for want of FUSE has failed."""

from collections.abc import Generator
from pathlib import Path

import pytest


def fail_if_fuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip that gives FUSE as its reason into a failure."""
    if not report.skipped or not Path("/dev/fuse").exists():
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
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
