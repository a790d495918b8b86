"""What fsync costs on mounts: streamfs of two META classes beside ext4 on the same disk.

Appends that are fsync'd one by one, by one writer and by eight, and SQLite's commits. A value is
the median of the rounds' ratios.
"""

import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import fio
from bench.loop import why_not
from bench.mounts import Mounted, ext4, flushes, folder, meta_class, streamfs
from bench.table import Row, Target, main, ratio, row, unavailable

DEVICE_BYTES = 2 << 30
MEMORY = Path("/dev/shm")  # META there is volatile: fsync waits for the log on DATA
ROUNDS, ROUNDS_QUICK = 5, 1
SECONDS, SECONDS_QUICK = 3, 1
WRITERS = 8
# docs/DESIGN.md "Numbers"
OF_EXT4, OF_ONE_WRITER = 1.5, 3.0


@dataclass(frozen=True)
class Done:
    """How many fsyncs or commits."""

    count: int
    a_second: float


Work = Callable[[Path, float], Done]  # in a folder, for so many seconds


def appends(folder: Path, seconds: float, writers: int = 1) -> Done:
    """Append 4 KiB and fsync, over and over, each writer to a file of its own."""
    options = ["--rw=write", "--bs=4k", "--fsync=1", "--size=256m", f"--numjobs={writers}"]
    options += ["--fallocate=none", "--file_append=1"]
    account = fio.run(folder, [*options, "--time_based", f"--runtime={seconds}"])
    count = int(account["write"]["total_ios"])
    return Done(count, fio.operations_a_second(account, "write"))


def commits(folder: Path, seconds: float, journal: str = "delete") -> Done:
    """Insert a row of 100 bytes a transaction, synchronous=full."""
    with closing(sqlite3.connect(folder / "commits.db", isolation_level=None)) as database:
        database.execute(f"pragma journal_mode={journal}")
        database.execute("pragma synchronous=full")
        database.execute("create table t(key integer primary key, value text)")
        done, begin = 0, time.monotonic()
        while time.monotonic() < begin + seconds:
            database.execute("insert into t(value) values (?)", ("v" * 100,))
            done += 1
        return Done(done, done / (time.monotonic() - begin))


ONE, MANY = "fsync'd 4 KiB appends", f"fsync'd 4 KiB appends, {WRITERS} writers"
WORK: dict[str, Work] = {
    ONE: appends,
    MANY: partial(appends, writers=WRITERS),
    "SQLite commits, rollback journal": commits,
    "SQLite commits, write-ahead log": partial(commits, journal="wal"),
}


def measure(quick: bool) -> list[Row]:
    """Return the rows of every kind of work and META class."""
    if reason := why_not(["mkfs.ext4", "fio"]):
        return [unavailable("fsync on mounts", reason)]
    with ExitStack() as stack:
        mounts = mounted(stack)
        rounds = [one_round(mounts, quick) for _ in range(ROUNDS_QUICK if quick else ROUNDS)]
    return list(rows(rounds))


def mounted(stack: ExitStack) -> dict[str, Mounted]:
    """Mount ext4 and a streamfs a META class, by class."""
    work = folder(stack)
    memory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
    mounts = {"ext4": ext4(stack, work, DEVICE_BYTES)}
    for place in (work, memory):
        one = streamfs(stack, work / place.name, DEVICE_BYTES, place / "meta")
        mounts[f"META class {meta_class(one)}"] = one
    return mounts


Round = dict[str, dict[str, tuple[float, float]]]  # by work, then mount: a second, flushes each


def one_round(mounts: dict[str, Mounted], quick: bool) -> Round:
    """Do each kind of work on each mount, one after the other."""
    seconds = SECONDS_QUICK if quick else SECONDS
    return {
        name: {where: once(work, one, seconds) for where, one in mounts.items()}
        for name, work in WORK.items()
    }


def once(work: Work, one: Mounted, seconds: float) -> tuple[float, float]:
    """Return how many a second, and device flushes for each (streamfs only)."""
    folder = one.point / "work"
    folder.mkdir()
    before = flushes(one)
    done = work(folder, seconds)
    each = (flushes(one) - before) / done.count
    shutil.rmtree(folder)
    return done.a_second, each


def rows(rounds: list[Round]) -> Iterator[Row]:
    """Yield rate, ratio to ext4 and flushes of all work, then what many writers gain."""
    for name in WORK:
        for where in rounds[0][name]:
            rates = [each[name][where][0] for each in rounds]
            yield row(f"{name}: {where}", statistics.median(rates), "a second")
            if where == "ext4":
                continue
            others = [each[name]["ext4"][0] for each in rounds]
            target = Target(OF_EXT4, at_least=True) if name != MANY else None
            yield ratio(f"{name}: ÷ ext4, {where}", rates, others, target)
            each_one = statistics.median(each[name][where][1] for each in rounds)
            yield row(f"{name}: device flushes, {where}", each_one, "each")
    for where in rounds[0][MANY]:
        many, one = ([each[name][where][0] for each in rounds] for name in (MANY, ONE))
        target = Target(OF_ONE_WRITER, at_least=True) if where != "ext4" else None
        yield ratio(f"{WRITERS} writers ÷ 1, {where}", many, one, target)


if __name__ == "__main__":
    sys.exit(main("fsync", __doc__.splitlines()[0], measure))
