#!/usr/bin/env python3
"""Fuzz the metadata engine and the placement model, from seeds and what earlier runs found.

Usage: campaign.py [--seconds N [--seed N] | --executions N [--fast BUILD]] [--corpus DIR]
                   [--jobs N] [--json FILE] BUILD

BUILD is what `cmake --preset fuzz` configured and its target `fuzzers` built: address and
undefined-behaviour sanitizers. --executions (50M and 500k are numbers too) goes on until the
targets together made so many, the kept ones counted: DIR (BUILD/corpus) keeps inputs, and how many
executions these very programs made, so that a campaign may be ended at any time and taken up again.
--fast names the build of `fuzz-fast`, the same programs without sanitizers (libstdc++'s assertions,
our own, and addresses beside META that nobody may read): it makes nine tenths of the executions,
and after every leg of it BUILD runs the whole corpus again and makes its tenth. The corpus that a
leg begins with counts as executed.

--seed with an empty DIR makes the same executions in the same order each time, as far as the time
goes: what a gate wants, so that a verdict is about the change and not about luck.

Prints a closing line a target and a total, the two kinds apart. Exits 1 when a target stopped: a
crash, a leak, a hang, too much memory. Then it says with which input, and what reproduces it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

TARGETS = ["image", "fsck", "journal", "log", "model"]
INPUT_BYTES_MAX = 258  # tests/fuzz/input.h: kInputBytesMax
# A run takes a millisecond. Memory is that of the images; no allocation comes near the bound unless
# media decided its size. The time is the wall's: a run that the machine halted is made again.
LIMITS = ["-rss_limit_mb=1024", "-malloc_limit_mb=16", "-timeout=60", "-report_slow_units=60"]
# Two checks that cost a third are left out: stacks of allocations, which the command that
# reproduces a crash prints, and stack use after return, which the unit tests look for.
SANITIZERS = {
    "ASAN_OPTIONS": "quarantine_size_mb=4:malloc_context_size=0:detect_leaks=1"
    ":detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
COUNT = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
KEPT = re.compile(r"Test unit written to (\S+)")
CHECKED_SHARE = 10  # one execution of so many is under the sanitizers
CHECKED_LEG = 50_000
FAST_LEG = CHECKED_LEG * (CHECKED_SHARE - 1)


@dataclass
class Outcome:
    """How one target fared: `made` and its cost now, the two sums with what was kept."""

    target: str
    checked: int = 0
    fast: int = 0
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    inputs: int = 0
    passed: bool = True

    def speed(self, kind: str) -> int:
        """Executions a CPU second of this campaign."""
        return int(self.made.get(kind, 0) / max(self.cpu_seconds.get(kind, 0.0), 0.01))


def say(text: str) -> None:
    """Print a line to standard output, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def number(text: str) -> int:
    """Read a count; "50M" and "500k" are counts, too."""
    units = {"k": 1000, "M": 1_000_000}
    return int(float(text[:-1]) * units[text[-1]]) if text[-1:] in units else int(text)


class Target:
    """A target: its programs, its corpus, its count. For one thread."""

    def __init__(self, name: str, build: Path, fast: Path | None, corpus: Path) -> None:
        """Count from nothing."""
        self.build, self.corpus = build, corpus / name
        self.corpus.mkdir(parents=True, exist_ok=True)
        self.programs = {"checked": build / f"bin/fuzz_{name}"}
        if fast:
            self.programs["fast"] = fast / f"bin/fuzz_{name}"
        self.count_file = corpus / f"executions-{name}.json"
        self.key = {kind: digest(program) for kind, program in self.programs.items()}
        self.outcome = Outcome(name)

    def take_up(self) -> None:
        """Go on with the count that an earlier campaign left for the same programs."""
        kept = json.loads(self.count_file.read_text()) if self.count_file.exists() else {}
        for kind, key in self.key.items():
            setattr(self.outcome, kind, kept.get(kind, {}).get(key, 0))

    def leg(self, kind: str, *until: str) -> bool:
        """Run one program until then; its own output is kept in BUILD/fuzz_TARGET.log."""
        name, outcome = self.outcome.target, self.outcome
        log = self.build / f"fuzz_{name}.log"
        seeds = self.build / f"seeds-{name}.txt"  # in an order that no folder's reader decides
        seeds.write_text(",".join(map(str, sorted((self.build / "seeds" / name).iterdir()))))
        command = [
            str(self.programs[kind]),
            *LIMITS,
            *until,
            f"-max_len={INPUT_BYTES_MAX}",
            "-entropic=0",
            "-reload=0",  # nobody else writes there
            "-print_final_stats=1",
            f"-artifact_prefix={self.build}/stopped-{name}-",
            f"-seed_inputs=@{seeds}",
            str(self.corpus),
        ]
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=file, env=os.environ | SANITIZERS
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        text = log.read_text(errors="replace")
        found = COUNT.search(text)
        made = int(found[1]) if found else 0
        setattr(outcome, kind, getattr(outcome, kind) + made)
        outcome.made[kind] = outcome.made.get(kind, 0) + made
        spent = usage.ru_utime + usage.ru_stime
        outcome.cpu_seconds[kind] = outcome.cpu_seconds.get(kind, 0.0) + spent
        outcome.inputs = sum(1 for _ in self.corpus.iterdir())
        outcome.passed = made > 0 and (process.returncode == 0 or self.was_halted(kind, text))
        if not outcome.passed:
            self.say_what_stopped(kind, text, process.returncode)
        return outcome.passed

    def was_halted(self, kind: str, text: str) -> bool:
        """Whether a run only seemed to hang: alone, its input ends in time."""
        inputs = KEPT.findall(text)
        if not inputs or "-timeout-" not in inputs[-1]:
            return False
        command = [str(self.programs[kind]), *LIMITS, inputs[-1]]
        again = subprocess.run(
            command, check=False, capture_output=True, env=os.environ | SANITIZERS
        )
        if again.returncode != 0:
            return False
        say(f"{self.outcome.target}: the machine halted a run; its input passes")
        Path(inputs[-1]).unlink()
        return True

    def keep_count(self) -> None:
        """Whole or not at all."""
        counts = {kind: {key: getattr(self.outcome, kind)} for kind, key in self.key.items()}
        fresh = self.count_file.with_suffix(".new")
        fresh.write_text(json.dumps(counts) + "\n")
        fresh.replace(self.count_file)

    def say_what_stopped(self, kind: str, text: str, code: int) -> None:
        """The report, the input, and how to see it again."""
        say("\n".join(line for line in text.splitlines() if not line.startswith("#"))[-6000:])
        inputs = KEPT.findall(text)
        if inputs:
            say(f"{self.outcome.target}: stopped by {inputs[-1]} ({kind} program)")
            say(f"{self.outcome.target}: reproduce: {self.programs['checked']} {inputs[-1]}")
        else:
            say(f"{self.outcome.target}: the {kind} program ended with {code} and kept no input")

    def round(self, executions: int) -> bool:
        """A fast leg, then one under the sanitizers; return whether there is more to do."""
        outcome = self.outcome
        wanted = executions - executions // CHECKED_SHARE if "fast" in self.programs else 0
        fast = min(FAST_LEG, wanted - outcome.fast)
        if fast > 0:
            self.leg("fast", f"-runs={fast}")
            self.keep_count()
        if outcome.passed:  # the corpus at least, even when there were enough
            checked = min(CHECKED_LEG, max(1, executions - wanted - outcome.checked))
            self.leg("checked", f"-runs={checked}")
            self.keep_count()
        say(f"{outcome.target}: {outcome.fast + outcome.checked} of {executions}")
        return outcome.passed and outcome.fast + outcome.checked < executions


def run_until(executions: int, targets: list[Target], jobs: int) -> None:
    """Rounds of one target after another, so that none waits for the end of the others."""
    waiting: SimpleQueue[Target] = SimpleQueue()
    for target in targets:
        target.take_up()
        waiting.put(target)

    def work(_: int) -> None:
        while True:
            try:
                target = waiting.get_nowait()
            except Empty:  # the rest are others' at this moment
                return
            if target.round(executions):
                waiting.put(target)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        list(pool.map(work, range(jobs)))


def run_for(seconds: int, seed: int, targets: list[Target], jobs: int) -> None:
    """Run one leg of each target."""
    until = [f"-max_total_time={seconds}", f"-seed={seed}"]
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        list(pool.map(lambda target: target.leg("checked", *until), targets))


def digest(program: Path) -> str:
    """The digest of a program's bytes: a count is of one digest."""
    return hashlib.sha256(program.read_bytes()).hexdigest()[:16]


def closing_line(outcome: Outcome) -> str:
    """The summary of a target's run."""
    speeds = ", ".join(
        f"{outcome.speed(kind)} {kind} ones a CPU second" for kind in sorted(outcome.made)
    )
    return (
        f"{outcome.target}: {outcome.checked} executions under the sanitizers, {outcome.fast} fast,"
        f" {speeds}, {outcome.inputs} inputs kept, {'passed' if outcome.passed else 'FAILED'}"
    )


def main() -> int:
    """Run all targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=0, help="0 = another one each time")
    parser.add_argument("--executions", type=number, help="of all targets together, instead")
    parser.add_argument("--fast", type=Path, help="build without sanitizers for most of them")
    parser.add_argument("--corpus", type=Path, help="default: BUILD/corpus")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("build", type=Path)
    args = parser.parse_args()
    build = args.build.resolve()
    fast = args.fast.resolve() if args.fast else None
    subprocess.run([build / "bin/fuzz_seeds", build / "seeds"], check=True)
    corpus = (args.corpus or build / "corpus").resolve()
    targets = [Target(name, build, fast, corpus) for name in TARGETS]

    if args.executions:
        run_until(-(-args.executions // len(targets)), targets, args.jobs)
    else:
        run_for(args.seconds, args.seed, targets, args.jobs)
    outcomes = [target.outcome for target in targets]
    for outcome in outcomes:
        say(closing_line(outcome))
    if args.json:
        args.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")
    passed = sum(each.passed for each in outcomes)
    checked, fast = (sum(getattr(each, kind) for each in outcomes) for kind in ("checked", "fast"))
    say(
        f"fuzz: {checked + fast} executions, {checked} under the sanitizers and {fast} fast; "
        f"{passed} passed, {len(outcomes) - passed} failed"
    )
    return 0 if passed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
