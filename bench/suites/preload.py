"""The preload library's cost to a program: time and instructions of opens, size, start.

Times are medians of the rounds' ratios, with and without the library by turns, on tmpfs, where an
open costs least. Instructions are those of the process, counted by valgrind: those of so many
rounds, less those of half as many. On a streamfs mount a file that a rule knows also costs the
question whether it may be labelled, the first time; it is shown, and has no target.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.loop import not_installed
from bench.mounts import folder, streamfs
from bench.paths import BIN
from bench.table import Row, Target, main, ratio, row, unavailable

PRELOAD = BIN.parent / "lib/libstream_preload.so"
MEMORY = Path("/dev/shm")
ROUNDS, ROUNDS_QUICK = 31, 7
COUNT, COUNT_QUICK = 100_000, 20_000
COUNT_MOUNTED = 4_000
COUNT_COUNTED = 2_000
SLOWER_MAX = 1.03
BYTES_MAX = 64 * 1024
KINDS = {
    "open to read, close": ("open-to-read", "plain.db", Target(SLOWER_MAX)),
    "open to write, close": ("open-to-write", "plain.db", Target(SLOWER_MAX)),
    "open to write, close, a '-' in the name": ("open-to-write", "a-b.db", Target(SLOWER_MAX)),
    "open to write, close, a name that a rule knows": ("open-to-write", "a-wal", None),
    "pwrite and pread": ("read-and-write", "plain.db", None),
}


def environment(*, preloaded: bool) -> dict[str, str]:
    """Without what else would be preloaded."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "STREAMFS_"))}
    return clean | ({"LD_PRELOAD": str(PRELOAD)} if preloaded else {})


def nanoseconds(kind: str, file: Path, count: int, *, preloaded: bool) -> float:
    """Return what one round takes."""
    words = [str(BIN / "preload_opens"), kind, str(file), str(count)]
    env = environment(preloaded=preloaded)
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    return float(done.stdout)


def counted(kind: str, file: Path, count: int, *, preloaded: bool) -> int:
    """Return the instructions of a whole run."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    words = [*tool, str(BIN / "preload_opens"), kind, str(file), str(count)]
    env = environment(preloaded=preloaded)
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        message = f"valgrind counted nothing: {done.stderr[-300:]}"
        raise RuntimeError(message)
    return int(found.group(1))


def instructions(kind: str, file: Path, *, preloaded: bool) -> float:
    """Return those of one round."""
    many, few = (
        counted(kind, file, count, preloaded=preloaded)
        for count in (COUNT_COUNTED, COUNT_COUNTED // 2)
    )
    return (many - few) / (COUNT_COUNTED // 2)


def timed(name: str, kind: str, file: Path, rounds: int, count: int, target: Target | None) -> Row:
    """Return the ratio of times with and without the library."""
    ours, others = [], []
    for _ in range(rounds):
        others.append(nanoseconds(kind, file, count, preloaded=False))
        ours.append(nanoseconds(kind, file, count, preloaded=True))
    return ratio(f"{name}: time ÷ without", ours, others, target)


def on_tmpfs(work: Path, *, quick: bool) -> Iterator[Row]:
    """Yield times and instructions of each kind."""
    rounds = ROUNDS_QUICK if quick else ROUNDS
    count = COUNT_QUICK if quick else COUNT
    for name, (kind, file, target) in KINDS.items():
        yield timed(name, kind, work / file, rounds, count, target)
        if reason := not_installed(["valgrind"]):
            yield unavailable(f"{name}: instructions added", reason)
            continue
        with_it = instructions(kind, work / file, preloaded=True)
        added = round(with_it - instructions(kind, work / file, preloaded=False))
        none = Target(0) if kind == "read-and-write" else None
        yield row(f"{name}: instructions added", added, "a round", none)


def on_streamfs(*, quick: bool) -> Iterator[Row]:
    """Yield what a question to the mount costs."""
    with ExitStack() as stack:
        mount = streamfs(stack, folder(stack) / "mount", 1 << 30)
        for file, what in (("plain.db", "no rule"), ("a-wal", "a rule")):
            name = f"open to write, close, on streamfs, {what}"
            rounds = 3 if quick else 9
            path = mount.point / file
            yield timed(name, "open-to-write", path, rounds, COUNT_MOUNTED, None)


def size(work: Path) -> Row:
    """Return how large the library is as it would be packaged."""
    stripped = work / "stripped.so"
    subprocess.run(["strip", "-o", stripped, PRELOAD], check=True)
    return row("size, stripped", stripped.stat().st_size, "bytes", Target(BYTES_MAX))


def start(rounds: int) -> Row:
    """Return how many microseconds more a process takes that does nothing."""
    took: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(rounds):
        for preloaded, spent in took.items():
            began = time.perf_counter()
            subprocess.run(["/bin/true"], env=environment(preloaded=preloaded), check=True)
            spent.append(time.perf_counter() - began)
    more = statistics.median(took[True]) - statistics.median(took[False])
    return row("start of a process: more than without", more * 1e6, "µs")


def measure(quick: bool) -> list[Row]:
    """Return all rows."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        work = Path(name)
        rows = [size(work), start(50 if quick else 500), *on_tmpfs(work, quick=quick)]
    if os.geteuid() != 0:
        return [*rows, unavailable("on streamfs", "mounting as root")]
    return [*rows, *on_streamfs(quick=quick)]


if __name__ == "__main__":
    sys.exit(main("preload", __doc__.splitlines()[0], measure))
