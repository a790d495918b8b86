"""xfstests' generic quick group on streamfs: what a filesystem of the kernel is held to.

usage: python -m tests.conformance.xfstests CHECKOUT [TEST...]

CHECKOUT is a built checkout of xfstests of the version that xfstests.toml names; TEST is a test as
generic/001, and without one all of the group are run. Each failure that is expected stands in
xfstests.toml with its cause. Exits 0 when exactly the expected tests failed and fsck finds nothing
on either device.
"""

import os
import signal
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from tests.conformance.xfstests_setup import check, digest, faults, missing, placed

CONFIGURATION = Path(__file__).parent / "xfstests.toml"
GROUP = "generic/quick"
GROUP_SECONDS = 2 * 3600
CAUSES = {"test's assumption", "kernel FUSE", "missing feature", "harness", "streamfs"}
CAP_SYS_RESOURCE = 24


class Outcome(NamedTuple):
    """Tests by how they ended, and why others were not run."""

    passed: set[str]
    failed: dict[str, str]
    not_run: dict[str, str]


def outcome_of(report: Path) -> Outcome:
    """Read the report of `check`."""
    out = Outcome(set(), {}, {})
    if not report.exists():
        out.failed["xfstests itself"] = "it ended without a report"
        return out
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = case.attrib["name"]
        failure, skipped = case.find("failure"), case.find("skipped")
        if skipped is not None:
            out.not_run[name] = skipped.attrib.get("message", "")
        elif failure is not None:
            out.failed[name] = failure.attrib.get("message", "")
        else:
            out.passed.add(name)
    return out


def has_capability(number: int) -> bool:
    """Whether this process has a capability."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (effective,) = (line.split()[1] for line in lines if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> number & 1)


def expected_here(configuration: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the failures that are expected of this process, by test."""
    capable = has_capability(CAP_SYS_RESOURCE)
    return {
        each["test"]: each
        for each in configuration["expected"]
        if not (capable and each.get("without") == "CAP_SYS_RESOURCE")
    }


def complaints(outcome: Outcome, expected: dict[str, dict[str, str]]) -> list[str]:
    """Compare both ways: failures that nobody expects, and expected ones that did not come."""
    out = [f"{test}: failed: {why}" for test, why in outcome.failed.items() if test not in expected]
    out += [
        f"{test}: passed, although a failure is expected ({expected[test]['cause']}:"
        f" {expected[test]['why']}); take it out of {CONFIGURATION.name}"
        for test in sorted(outcome.passed & expected.keys())
    ]
    return out


def table(outcome: Outcome, configuration: dict[str, Any]) -> Iterable[str]:
    """Count failures and tests not run by their causes."""
    expected = {each["test"]: each["cause"] for each in configuration["expected"]}
    causes = Counter(expected.get(test, "unknown") for test in outcome.failed)
    for cause, count in sorted(causes.items()):
        yield f"{count:5d} failed: {cause}"
    reasons: Counter[str] = Counter()
    for said in outcome.not_run.values():
        known = (each for each in configuration["not_run"] if each["says"] in said)
        found = next(known, None)
        reasons[f"{found['cause']}: {found['why']}" if found else "other"] += 1
    for reason, count in reasons.most_common():
        yield f"{count:5d} not run: {reason}"


def run_all(checkout: Path, tests: list[str], configuration: dict[str, Any]) -> bool:
    """Run tests, compare with what is expected, and check both filesystems."""
    expected = expected_here(configuration)
    with tempfile.TemporaryDirectory(prefix="sfs.", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the tests' users reach into it
        with placed(checkout, folder) as place:
            check(place, tests or ["-g", GROUP], GROUP_SECONDS)
            outcome = outcome_of(place.report)
            wrong = complaints(outcome, expected) + faults(place)
    print("\n".join([*wrong, *table(outcome, configuration)]))
    print(
        f"xfstests {configuration['version']}: {len(outcome.passed)} passed,"
        f" {len(outcome.failed)} failed, {len(outcome.not_run)} not run;"
        f" {len(wrong)} unexpected"
    )
    return not wrong and bool(outcome.passed)


def main(arguments: list[str]) -> int:
    """Look for everything that is needed, then run."""
    if not arguments or os.geteuid() != 0:
        print(__doc__ if not arguments else "xfstests mounts as root", file=sys.stderr)
        return 2
    checkout = Path(arguments[0]).resolve()
    configuration = tomllib.loads(CONFIGURATION.read_text())
    if lacking := missing(checkout):
        print("xfstests cannot run:", *lacking, sep="\n  ", file=sys.stderr)
        return 2
    if digest(checkout) != configuration["digest"]:
        print(f"{checkout} is not xfstests {configuration['version']}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is unmounted
    return 0 if run_all(checkout, arguments[1:], configuration) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
