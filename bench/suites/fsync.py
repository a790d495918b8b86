"""The cost of fsync on mounts: streamfs of each kind of META beside ext4 on the same disk.

Appends that are fsync'd one by one, by one writer and by eight; commits of SQLite, RocksDB and
PostgreSQL; a mail server's files; large files with fsync and files without. A value is the median
of the rounds' ratios. META in /dev/shm that is declared persistent, or trusted as memory, emulates
persistent memory: it is as fast as DRAM, and nothing of it survives a power cut.
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
    DECLARED,
    MEMORY,
    OVER_IO_URING,
    Mounted,
    ext4,
    fences,
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
ROUNDS, ROUNDS_QUICK = 5, 1
SECONDS, SECONDS_QUICK = 3, 1
WRITERS, CLIENTS, MAILERS = 8, 8, 16
# docs/EXPERIMENTS.md, "Speed beside ext4"
OF_EXT4, OF_ONE_WRITER = 1.5, 3.0
MAIL_OF_EXT4, CLIENTS_OF_EXT4 = 0.9, 1.0
OF_DEVICE = 1.0  # io_uring ÷ /dev/fuse
OF_NO_LOG = 0.97  # with an intent log ÷ without one, for work that the log does not serve
# For an append and its fsync with an intent log: the commit has two fences; rounds of the log and
# checkpoints add a few to all of them.
FENCES, FLUSHES = 2.02, 0.01


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
LARGE, ASYNC = "fsync'd 1 MiB appends", "4 KiB writes without fsync"
KINDS += [Kind(workloads.large, {LARGE: 1}), Kind(workloads.without_fsync, {ASYNC: 1})]
EMULATED = "emulated persistent memory"
PERSISTENT, TRUSTED = f"persistent META ({EMULATED})", f"trusted META ({EMULATED})"
NO_LOG = f"{PERSISTENT}, no intent log"
IN_MEMORY = {  # options of mkfs.streamfs
    PERSISTENT: [DECLARED["persistent"]],
    TRUSTED: [DECLARED["trusted"]],
    NO_LOG: [DECLARED["persistent"], "--intent-log", "none"],
}
HELD_WITH_LOG = {  # against ext4
    ONE: 4.0,
    MANY: 3.0,
    DELETE: 3.0,
    WAL: 2.0,
    FILLSYNC: 3.0,
    MANY_CLIENTS: 1.2,
    MAIL: 1.2,
}
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
    """Mount ext4 and a streamfs a kind of META, by name; the first over io_uring too."""
    work = folder(stack)
    work.chmod(0o711)  # PostgreSQL's user has to get to its own
    memory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
    mounts = {"ext4": ext4(stack, work, DEVICE_BYTES)}
    for place in (work, memory):
        one = streamfs(stack, work / place.name, DEVICE_BYTES, place / "meta")
        mounts[f"META class {meta_class(one)}"] = one
    for number, (name, make) in enumerate(IN_MEMORY.items()):
        place = work / f"memory{number}"
        meta = memory / f"meta{number}"
        mounts[name] = streamfs(stack, place, DEVICE_BYTES, meta, make=make)
    for mounter in over_io_uring(streamfs).values():
        one = mounter(stack, work / "uring", DEVICE_BYTES)
        mounts[f"META class {meta_class(one)}{OVER_IO_URING}"] = one
    return mounts


@dataclass(frozen=True)
class Figures:
    """How many a second; device flushes and META's fences for each."""

    a_second: float
    flushes: float
    fences: float


Round = dict[str, dict[str, Figures]]  # by work, then mount


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


def once(kind: Kind, one: Mounted, seconds: float) -> dict[str, Figures]:
    """Return the figures by name."""
    with ExitStack() as stack:
        place = one.point / "work"
        place.mkdir()
        stack.callback(shutil.rmtree, place)
        measured = kind.work(stack, place)
        found = {}
        for name, side_by_side in kind.side_by_side.items():
            settle(one)
            before = counts(one)
            done = measured(side_by_side, seconds)
            flushed, fenced = (
                (b - a) / done.count for a, b in zip(before, counts(one), strict=True)
            )
            found[name] = Figures(done.a_second, flushed, fenced)
        return found


def counts(one: Mounted) -> tuple[int, int]:
    """Return device flushes and META's fences so far; a kernel's filesystem has no fences."""
    return flushes(one), 0 if one.server is None else fences(one)


def rows(rounds: list[Round]) -> Iterator[Row]:
    """Yield the figures of all work on all mounts, then the gain of many writers."""
    for name in rounds[0]:
        for where in rounds[0][name]:
            yield from rows_of(name, where, [each[name] for each in rounds])
    for where in rounds[0][MANY]:
        many, one = ([each[name][where].a_second for each in rounds] for name in (MANY, ONE))
        yield ratio(f"{WRITERS} writers ÷ 1, {where}", many, one, held(where, OF_ONE_WRITER))


def rows_of(name: str, where: str, rounds: list[dict[str, Figures]]) -> Iterator[Row]:
    """Yield the figures of one kind of work on one mount, with the ratios to other mounts."""

    def rates(mount: str) -> list[float]:
        return [each[mount].a_second for each in rounds]

    with_log = where in (PERSISTENT, TRUSTED)
    logged = with_log and name == ONE
    yield row(f"{name}: {where}", statistics.median(rates(where)), "a second")
    flushed = statistics.median(each[where].flushes for each in rounds)
    none = Target(FLUSHES) if logged else None
    yield row(f"{name}: device flushes, {where}", flushed, "each", none)
    if where == "ext4":
        return
    fenced = statistics.median(each[where].fences for each in rounds)
    few = Target(FENCES) if logged else None
    yield row(f"{name}: fences of META, {where}", fenced, "each", few)
    yield ratio(f"{name}: ÷ ext4, {where}", rates(where), rates("ext4"), of_ext4(name, where))
    if with_log:
        least = Target(OF_NO_LOG, at_least=True) if name in (LARGE, ASYNC) else None
        yield ratio(f"{name}: ÷ no intent log, {where}", rates(where), rates(NO_LOG), least)
    if where.endswith(OVER_IO_URING):
        plain = rates(where.removesuffix(OVER_IO_URING))
        yield ratio(f"{name}: io_uring ÷ /dev/fuse", rates(where), plain, Target(OF_DEVICE, True))


def of_ext4(name: str, where: str) -> Target | None:
    """Return the target of the ratio to ext4, if there is one."""
    if where in (PERSISTENT, TRUSTED):
        return Target(HELD_WITH_LOG[name], at_least=True) if name in HELD_WITH_LOG else None
    return held(where, HELD[name]) if name in HELD and where != NO_LOG else None


def held(where: str, least: float) -> Target | None:
    """Return ``least`` as the target of a streamfs over /dev/fuse; nothing for other mounts."""
    if where in ("ext4", *IN_MEMORY) or OVER_IO_URING in where:
        return None
    return Target(least, at_least=True)


if __name__ == "__main__":
    sys.exit(main("fsync", __doc__.splitlines()[0], measure))
