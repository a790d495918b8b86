"""The cost of fsync on mounts: streamfs of two META classes beside ext4 on the same disk.

Appends that are fsync'd one by one, by one writer and by eight; commits of SQLite, RocksDB and
PostgreSQL; a mail server's files. A value is the median of the rounds' ratios.
"""

import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import workloads
from bench.loop import not_installed, why_not
from bench.mounts import (
    OVER_IO_URING,
    Mounted,
    ext4,
    flushes,
    folder,
    meta_class,
    over_io_uring,
    settle,
    streamfs,
)
from bench.programs.databases import postgres_bin
from bench.programs.place import ProgramError
from bench.table import Row, Target, main, ratio, row, unavailable

DEVICE_BYTES = 2 << 30
MEMORY = Path("/dev/shm")  # META there is volatile
ROUNDS, ROUNDS_QUICK = 5, 1
SECONDS, SECONDS_QUICK = 3, 1
WRITERS, CLIENTS, MAILERS = 8, 8, 16
# docs/EXPERIMENTS.md, "Speed beside ext4"
OF_EXT4, OF_ONE_WRITER = 1.5, 3.0
MAIL_OF_EXT4, CLIENTS_OF_EXT4 = 0.9, 1.0
OF_DEVICE = 1.0  # io_uring ÷ /dev/fuse


def no_postgres() -> str | None:
    """Say what is wrong where PostgreSQL's programs are not installed."""
    try:
        postgres_bin()
    except ProgramError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Kind:
    """A kind of work, made ready once and then measured for each name with so many at it."""

    work: workloads.Work
    side_by_side: dict[str, int]
    lacks: Callable[[], str | None] = lambda: None  # why it cannot be done here


ONE, MANY = "fsync'd 4 KiB appends", f"fsync'd 4 KiB appends, {WRITERS} writers"
DELETE, WAL = "SQLite commits, rollback journal", "SQLite commits, write-ahead log"
FILLSYNC, MAIL = "RocksDB fillsync", f"mail server (varmail), {MAILERS} processes"
CLIENT, MANY_CLIENTS = "pgbench, 1 client", f"pgbench, {CLIENTS} clients"
KINDS = [
    Kind(workloads.appends, {ONE: 1, MANY: WRITERS}),
    Kind(workloads.commits, {DELETE: 1}),
    Kind(partial(workloads.commits, journal="wal"), {WAL: 1}),
    Kind(workloads.fillsync, {FILLSYNC: 1}, partial(not_installed, ["db_bench"])),
    Kind(workloads.pgbench, {CLIENT: 1, MANY_CLIENTS: CLIENTS}, no_postgres),
    Kind(workloads.mail, {MAIL: MAILERS}),
]
HELD = {  # against ext4
    ONE: OF_EXT4,
    DELETE: OF_EXT4,
    WAL: OF_EXT4,
    MANY_CLIENTS: CLIENTS_OF_EXT4,
    MAIL: MAIL_OF_EXT4,
}


def measure(quick: bool) -> list[Row]:
    """Return the rows of every kind of work and META class."""
    if reason := why_not(["mkfs.ext4", "fio"]):
        return [unavailable("fsync on mounts", reason)]
    with ExitStack() as stack:
        mounts = mounted(stack)
        rounds = [one_round(mounts, quick) for _ in range(ROUNDS_QUICK if quick else ROUNDS)]
    return [*rows(rounds), *not_measured()]


def not_measured() -> Iterator[Row]:
    """Say what cannot be done here."""
    for kind in KINDS:
        if reason := kind.lacks():
            yield from (unavailable(name, reason) for name in kind.side_by_side)


def mounted(stack: ExitStack) -> dict[str, Mounted]:
    """Mount ext4 and a streamfs a META class, by class; the first over io_uring too."""
    work = folder(stack)
    work.chmod(0o711)  # PostgreSQL's user has to get to its own
    memory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
    mounts = {"ext4": ext4(stack, work, DEVICE_BYTES)}
    for place in (work, memory):
        one = streamfs(stack, work / place.name, DEVICE_BYTES, place / "meta")
        mounts[f"META class {meta_class(one)}"] = one
    for mounter in over_io_uring(streamfs).values():
        one = mounter(stack, work / "uring", DEVICE_BYTES)
        mounts[f"META class {meta_class(one)}{OVER_IO_URING}"] = one
    return mounts


Round = dict[str, dict[str, tuple[float, float]]]  # by work, then mount: a second, flushes each


def one_round(mounts: dict[str, Mounted], quick: bool) -> Round:
    """Do each kind of work that can be done on each mount, one after the other."""
    seconds = SECONDS_QUICK if quick else SECONDS
    found: Round = {}
    for kind in KINDS:
        if kind.lacks():
            continue
        for where, one in mounts.items():
            for name, figures in once(kind, one, seconds).items():
                found.setdefault(name, {})[where] = figures
    return found


def once(kind: Kind, one: Mounted, seconds: float) -> dict[str, tuple[float, float]]:
    """Return by name how many a second, and device flushes for each."""
    with ExitStack() as stack:
        place = one.point / "work"
        place.mkdir()
        stack.callback(shutil.rmtree, place)
        measured = kind.work(stack, place)
        found = {}
        for name, side_by_side in kind.side_by_side.items():
            settle(one)
            before = flushes(one)
            done = measured(side_by_side, seconds)
            found[name] = done.a_second, (flushes(one) - before) / done.count
    return found


def rows(rounds: list[Round]) -> Iterator[Row]:
    """Yield rate, ratio to ext4 and flushes of all work, then what many writers gain."""
    for name in rounds[0]:
        for where in rounds[0][name]:
            rates = [each[name][where][0] for each in rounds]
            yield row(f"{name}: {where}", statistics.median(rates), "a second")
            each_one = statistics.median(each[name][where][1] for each in rounds)
            yield row(f"{name}: device flushes, {where}", each_one, "each")
            if where == "ext4":
                continue
            others = [each[name]["ext4"][0] for each in rounds]
            target = held(where, HELD[name]) if name in HELD else None
            yield ratio(f"{name}: ÷ ext4, {where}", rates, others, target)
            if where.endswith(OVER_IO_URING):
                plain = [each[name][where.removesuffix(OVER_IO_URING)][0] for each in rounds]
                yield ratio(f"{name}: io_uring ÷ /dev/fuse", rates, plain, Target(OF_DEVICE, True))
    for where in rounds[0][MANY]:
        many, one = ([each[name][where][0] for each in rounds] for name in (MANY, ONE))
        yield ratio(f"{WRITERS} writers ÷ 1, {where}", many, one, held(where, OF_ONE_WRITER))


def held(where: str, least: float) -> Target | None:
    """Return ``least`` as the target of a streamfs over /dev/fuse; nothing for other mounts."""
    if where == "ext4" or OVER_IO_URING in where:
        return None
    return Target(least, at_least=True)


if __name__ == "__main__":
    sys.exit(main("fsync", __doc__.splitlines()[0], measure))
