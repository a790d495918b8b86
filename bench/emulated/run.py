"""A run: a fresh device, warm-up, ballast to the wanted spare, then the rounds that count."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.accounting import bytes_asked
from bench.emulated.controls import MetaWords, Way, mounted
from bench.emulated.folders import Folders
from bench.emulated.ssd import SPARE, SPARE_TOLERANCE, make_ssd, target_live_bytes
from bench.paths import ROOT
from bench.programs.place import unprivileged_user
from bench.programs.plan import Plan
from bench.ssd import Counters
from bench.system import BenchError, output_of

SEED = 20240229
PROGRAMS = ("postgres", "sqlite", "rocksdb", "logs", "media", "trees")
# Before the warm-up the ballast stops short by this share of the wanted live data.
MARGIN = 0.14
# The peak moves a little from round to round, and never back: approach the wanted one from below.
GUARD_WARMUP = 0.01
GUARD_COUNTED = 0.002
ATTEMPTS = 3

Progress = Callable[[str], None]  # called once a step with what comes next


@dataclass(frozen=True)
class Job:
    """A run: what is done, and how it is stored."""

    mode: str  # the way's name
    way: Way
    plan: Plan
    programs: tuple[str, ...] = PROGRAMS
    seed: int = SEED
    plp: bool = True  # the device has power-loss protection
    device: tuple[str, ...] = ()  # more options of ssd-sim create
    history: Path | None = None  # a folder that is copied there first, as a restore would


class Workload(Protocol):
    """The work, round by round."""

    def ask(self, operation: str, **arguments: int) -> dict[str, Any]:
        """Send one request and wait for its answer."""

    def bytes_asked(self) -> int:
        """Return what its programs have asked to write so far."""


class Device(Protocol):
    """The SSD below, which counts."""

    def counters(self) -> Counters:
        """Return what was counted since the last reset."""

    def reset(self) -> None:
        """Count anew."""


@dataclass(frozen=True)
class Counted:
    """The outcome of the rounds that count: all three values are of the same rounds."""

    counters: Counters
    app_bytes: int
    meta_words: MetaWords | None  # None: no META


@dataclass(frozen=True)
class Outcome:
    """The measurements of one run, over the counted rounds only."""

    mode: str
    meta_class: str
    app_bytes: int
    counters: Counters
    trace: Path | None
    warmup_share: float  # of all pages the device was sent, those before the counted rounds
    meta_words: MetaWords | None = None  # None: no META
    vstreams: list[dict[str, Any]] = field(default_factory=list)  # in the end

    @property
    def nand_per_app_byte(self) -> float:
        """NAND bytes programmed ÷ bytes the applications asked to write."""
        return self.counters.nand_bytes / self.app_bytes


class WorkloadClient:
    """The workload's process, seen from the demo."""

    def __init__(
        self,
        stack: ExitStack,
        mount: Path,
        stream_run: Path | None,
        plan: Plan,
        folders: Folders,
        only: Sequence[str] = PROGRAMS,
        seed: int = SEED,
        settle: Sequence[str | Path] = (),
    ) -> None:
        scratch = folders.shared / "scratch"
        scratch.mkdir()
        spec: dict[str, Any] = {
            "mount": str(mount),
            "scratch": str(scratch),
            "log": str(folders.work / "workload.log"),
            "stream_run": str(stream_run) if stream_run else None,
            "user": unprivileged_user(),
            "plan": asdict(plan),
            "seed": seed,
            "only": list(only),
            "settle": [str(word) for word in settle],
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.programs.runner", json.dumps(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        stack.callback(self._end)

    def ask(self, operation: str, **arguments: int) -> dict[str, Any]:
        """Send one request and wait for its answer; BenchError if it failed."""
        if self.process.stdin is None or self.process.stdout is None:
            raise AssertionError
        self.process.stdin.write(json.dumps({"op": operation, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"ok": False, "error": "it ended"}
        if not answer["ok"]:
            message = f"the workload failed: {answer['error']}"
            raise BenchError(message)
        return answer

    def bytes_asked(self) -> int:
        """Return what its programs have asked to write so far."""
        return bytes_asked(self.process.pid)

    def _end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def run(job: Job, folders: Folders, progress: Progress) -> Outcome:
    """Do one run from a fresh device to its figures; everything is undone at the end."""
    plan, image = job.plan, folders.images / f"{job.mode}.ssd"
    progress("fill")
    ssd = make_ssd(image, plan, *job.device, plp=job.plp)
    with ExitStack() as stack:
        control = mounted(stack, job.way, ssd, folders, unprivileged_user())
        if job.history is not None:
            output_of(["cp", "-a", job.history, control.mount / "history"])
        workload = WorkloadClient(
            stack,
            control.mount,
            control.stream_run,
            plan,
            folders,
            job.programs,
            job.seed,
            control.settle,
        )
        workload.ask("prepare")
        target = target_live_bytes(ssd.counters())
        # The peak counts: each round needs the space that an LSM tree takes while it compacts.
        top_up(workload, max(0, int(target * (1 - MARGIN)) - ssd.counters().peak_live_bytes))
        warm_up(workload, ssd, plan, progress)
        control.check_alive()
        counted = counted_rounds(workload, ssd, control.meta_words, plan, progress)
        control.check_alive()
        vstreams = control.vstreams()
        workload.ask("close")
    share = ssd.pages_before_reset / ssd.pages_written()
    image.unlink()
    return Outcome(
        job.mode,
        control.meta_class,
        counted.app_bytes,
        counted.counters,
        control.trace,
        share,
        counted.meta_words,
        vstreams,
    )


def counted_rounds(
    workload: Workload,
    ssd: Device,
    meta_words: Callable[[], MetaWords | None],
    plan: Plan,
    progress: Progress,
) -> Counted:
    """Run the rounds that count; return what device, META and programs came to in them.

    Peaks that leave too little spare, or in the end too much, make all that was counted void: then
    the ballast follows and counting starts again, with the same number of rounds.
    """
    first = plan.warmup_rounds + 1
    for attempt in range(1, ATTEMPTS + 1):
        ssd.reset()
        asked_before, words_before = workload.bytes_asked(), meta_words()
        for number in range(plan.counted_rounds):
            again = f", attempt {attempt}" if attempt > 1 else ""
            progress(f"round {number + 1} of {plan.counted_rounds}{again}")
            workload.ask("round", number=first + number)
            too_little = ssd.counters().effective_spare < SPARE - SPARE_TOLERANCE
            if too_little and attempt < ATTEMPTS:
                break
            # A peak cannot be taken back: from here on the ballast only grows, half-way, and not
            # once the spare is good, because a later peak may be higher.
            too_much = ssd.counters().effective_spare > SPARE + SPARE_TOLERANCE
            if too_much and number + 1 < plan.counted_rounds:
                top_up(workload, max(0, shortage(ssd, GUARD_COUNTED) // 2))
        first += number + 1
        off_by = abs(ssd.counters().effective_spare - SPARE)
        if off_by <= SPARE_TOLERANCE or attempt == ATTEMPTS:
            break
        top_up(workload, shortage(ssd, GUARD_WARMUP))
    words = meta_words()
    programmed = words.since(words_before) if words and words_before else None
    return Counted(ssd.counters(), workload.bytes_asked() - asked_before, programmed)


def warm_up(workload: Workload, ssd: Device, plan: Plan, progress: Progress) -> None:
    """Run the rounds that do not count; the ballast follows the highest peak they show.

    The first one still sees the programs' own data grow to what they keep.
    """
    for number in range(plan.warmup_rounds):
        progress(f"warm-up {number + 1} of {plan.warmup_rounds}")
        workload.ask("round", number=number + 1)
        missing = shortage(ssd, GUARD_WARMUP)
        if number > 0:
            top_up(workload, missing)
        if number == 0 or missing < 0:
            ssd.reset()


def shortage(ssd: Device, guard: float) -> int:
    """Return how much the peak since the last reset is short of ``guard`` below the target."""
    counters = ssd.counters()
    return int(target_live_bytes(counters) * (1 - guard)) - counters.peak_live_bytes


def top_up(workload: Workload, size: int) -> None:
    """Change the ballast by ``size`` bytes; less than 64 KiB is left alone."""
    if abs(size) >= 64 << 10:
        workload.ask("ballast", bytes=size >> 12 << 12)
