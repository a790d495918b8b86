#!/usr/bin/env python3
"""Fuzz the metadata engine: every target from its seeds, and what earlier runs found.

Usage: campaign.py [--seconds N | --executions N] [--jobs N] [--json FILE] BUILD

BUILD is what `cmake --preset fuzz` configured and its target `fuzzers` built. Corpora stay in
BUILD/corpus. Prints a line a target and a closing line; exits 1 when a target stopped, and says
with which input.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

TARGETS = ["image", "fsck", "journal", "log"]
INPUT_BYTES_MAX = 258  # tests/fuzz/input.h: kInputBytesMax
# A run takes a millisecond. Memory is that of the images; no allocation comes near the bound unless
# media decided its size. The time is the wall's: a busy machine may halt a run for long.
LIMITS = ["-rss_limit_mb=1024", "-malloc_limit_mb=16", "-timeout=60", "-report_slow_units=60"]
SANITIZERS = {
    "ASAN_OPTIONS": "quarantine_size_mb=4:malloc_context_size=1:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
COUNT = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
SPEED = re.compile(r"stat::average_exec_per_sec:\s*(\d+)")


@dataclass
class Outcome:
    """How one target fared."""

    target: str
    executions: int
    executions_per_second: int
    inputs: int
    passed: bool


def say(text: str) -> None:
    """One line to standard output, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def number(pattern: re.Pattern[str], text: str) -> int:
    """What libFuzzer's closing statistics say, 0 if it came to none."""
    found = pattern.search(text)
    return int(found[1]) if found else 0


def fuzz(target: str, build: Path, until: str) -> Outcome:
    """Run one target; its own output is kept in BUILD/fuzz_TARGET.log."""
    corpus = build / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    crashes = build / f"crash-{target}-"
    command = [
        str(build / f"bin/fuzz_{target}"),
        *LIMITS,
        until,
        f"-max_len={INPUT_BYTES_MAX}",
        "-entropic=0",
        "-print_final_stats=1",
        f"-artifact_prefix={crashes}",
        str(corpus),
        str(build / "seeds" / target),
    ]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, errors="replace",
        env=os.environ | SANITIZERS,
    )  # fmt: skip
    (build / f"fuzz_{target}.log").write_text(done.stderr)
    outcome = Outcome(
        target,
        number(COUNT, done.stderr),
        number(SPEED, done.stderr),
        len(list(corpus.iterdir())),
        done.returncode == 0,
    )
    if not outcome.passed:
        say(
            "\n".join(line for line in done.stderr.splitlines() if not line.startswith("#"))[-6000:]
        )
    say(
        f"{target}: {outcome.executions} executions, {outcome.executions_per_second} a second, "
        f"{outcome.inputs} inputs kept, {'passed' if outcome.passed else 'FAILED'}"
    )
    return outcome


def main() -> int:
    """Run all targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--executions", type=int, help="of all targets together, instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("build", type=Path)
    args = parser.parse_args()
    subprocess.run([args.build / "bin/fuzz_seeds", args.build / "seeds"], check=True)
    until = f"-max_total_time={args.seconds}"
    if args.executions:
        until = f"-runs={-(-args.executions // len(TARGETS))}"
    with ThreadPoolExecutor(max_workers=args.jobs) as pool:
        outcomes = list(pool.map(lambda target: fuzz(target, args.build, until), TARGETS))
    if args.json:
        args.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")
    passed = sum(each.passed for each in outcomes)
    total = sum(each.executions for each in outcomes)
    say(f"fuzz: {total} executions; {passed} passed, {len(outcomes) - passed} failed")
    return 0 if passed == len(outcomes) and total > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
