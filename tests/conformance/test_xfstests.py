"""The results of a run of xfstests are compared with the expected ones, both ways."""

import tomllib
from pathlib import Path

from tests.conformance.xfstests import (
    CAUSES,
    CONFIGURATION,
    complaints,
    expected_here,
    outcome_of,
    table,
)

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite>
<testcase name="generic/001" time="1"/>
<testcase name="generic/002" time="1"><failure message="output mismatch"/></testcase>
<testcase name="generic/003" time="1"><failure message="output mismatch"/></testcase>
<testcase name="generic/004" time="1"><skipped message="xfs_io fiemap failed"/></testcase>
<testcase name="generic/005" time="1"/>
</testsuite></testsuites>
"""
EXPECTED = {
    name: {"test": name, "cause": "harness", "why": "of a test"}
    for name in ("generic/003", "generic/004", "generic/005")
}


def test_unexpected_failures_and_unexpected_passes_are_told(tmp_path: Path) -> None:
    report = tmp_path / "result.xml"
    report.write_text(REPORT)
    outcome = outcome_of(report)
    assert outcome.passed == {"generic/001", "generic/005"}
    assert outcome.not_run.keys() == {"generic/004"}
    first, second = complaints(outcome, EXPECTED)
    assert first.startswith("generic/002: failed")
    assert second.startswith("generic/005: passed, although")
    configuration = {"expected": list(EXPECTED.values()), "not_run": []}
    assert [line.split(maxsplit=1)[1] for line in table(outcome, configuration)] == [
        "failed: harness",
        "failed: unknown",
        "not run: other",
    ]


def test_a_run_without_a_report_is_a_failure(tmp_path: Path) -> None:
    assert complaints(outcome_of(tmp_path / "none"), {})


def test_each_expected_failure_has_a_cause_and_a_reason() -> None:
    configuration = tomllib.loads(CONFIGURATION.read_text())
    for each in [*configuration["expected"], *configuration["not_run"]]:
        assert each["cause"] in CAUSES, each
        assert len(each["why"]) > 10, each
    names = [each["test"] for each in configuration["expected"]]
    assert sorted(set(names)) == sorted(names)
    assert expected_here(configuration).keys() <= set(names)
    assert any("fiemap" in each["says"] for each in configuration["not_run"])
