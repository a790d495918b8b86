"""Work that waits for fsync most of the time, done by programs in a folder of any filesystem.

Each function makes all ready in a folder and returns what is measured then; what it started ends
when the stack unwinds.
"""

import math
import os
import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from bench import fio
from bench.programs.databases import Cluster
from bench.programs.place import Place, unprivileged_user
from bench.system import BenchError, output_of


@dataclass(frozen=True)
class Done:
    """How many fsyncs, commits, transactions or mails."""

    count: int
    a_second: float


Measured = Callable[[int, float], Done]  # by so many side by side, for so many seconds
Work = Callable[[ExitStack, Path], Measured]


def appends(_: ExitStack, folder: Path) -> Measured:
    """Append 4 KiB and fsync, over and over, each writer to a file of its own."""

    def measured(writers: int, seconds: float) -> Done:
        files = folder / f"by {writers}"
        files.mkdir()
        options = ["--rw=write", "--bs=4k", "--fsync=1", "--size=256m", f"--numjobs={writers}"]
        options += ["--fallocate=none", "--file_append=1"]
        account = fio.run(files, [*options, "--time_based", f"--runtime={seconds}"])
        count = int(account["write"]["total_ios"])
        return Done(count, fio.operations_a_second(account, "write"))

    return measured


def large(_: ExitStack, folder: Path) -> Measured:
    """Append 1 MiB and fsync, over and over."""
    return _by_fio(folder, ["--rw=write", "--bs=1m", "--fsync=1", "--size=512m"])


def without_fsync(_: ExitStack, folder: Path) -> Measured:
    """Write 4 KiB at random places of a file through the page cache, with no fsync but a last."""
    return _by_fio(folder, ["--rw=randwrite", "--bs=4k", "--size=256m", "--end_fsync=1"])


def _by_fio(folder: Path, options: list[str]) -> Measured:
    def measured(jobs: int, seconds: float) -> Done:
        common = [f"--numjobs={jobs}", "--fallocate=none", "--time_based", f"--runtime={seconds}"]
        account = fio.run(folder, [*options, *common])
        count = int(account["write"]["total_ios"])
        return Done(count, fio.operations_a_second(account, "write"))

    return measured


def commits(stack: ExitStack, folder: Path, journal: str = "delete") -> Measured:
    """Insert a row of 100 bytes a transaction into SQLite, synchronous=full."""
    opened = sqlite3.connect(folder / "commits.db", isolation_level=None)
    database = stack.enter_context(closing(opened))
    database.execute(f"pragma journal_mode={journal}")
    database.execute("pragma synchronous=full")
    database.execute("create table t(key integer primary key, value text)")

    def measured(_: int, seconds: float) -> Done:
        done, begin = 0, time.monotonic()
        while time.monotonic() < begin + seconds:
            database.execute("insert into t(value) values (?)", ("v" * 100,))
            done += 1
        return Done(done, done / (time.monotonic() - begin))

    return measured


def fillsync(_: ExitStack, folder: Path) -> Measured:
    """RocksDB's own bench puts random keys, 100 bytes each, and syncs its log after each.

    The database is made anew within what is measured.
    """

    def measured(threads: int, seconds: float) -> Done:
        options = {
            "benchmarks": "fillsync",
            "db": folder / "rocksdb",
            "num": 100_000_000,  # keys to choose from, a thousandth of it
            "value_size": 100,
            "threads": threads,
            "duration": math.ceil(seconds),
            "ops_between_duration_checks": 10,
            "compression_type": "none",
            "stats_dump_period_sec": 0,
            "seed": 1,
        }
        told = output_of(["db_bench", *(f"--{k}={v}" for k, v in options.items())])
        rate, count = last(r"fillsync +:.* ([\d.]+) ops/sec [\d.]+ seconds (\d+) operations", told)
        return Done(int(count), float(rate))

    return measured


PGBENCH_SCALE = 8  # as many branches: fewer than clients, and these would wait for each other
PGBENCH_LOG_MIB = 64


def pgbench(stack: ExitStack, folder: Path) -> Measured:
    """PostgreSQL's TPC-B-like transactions, by clients of a server that has the folder for itself.

    The server works as a user that is not root, without whom it refuses to.
    """
    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamfs-bench-")))
    scratch.chmod(0o755)
    place = Place(folder, scratch, None, unprivileged_user(), scratch / "log")
    cluster = Cluster(place, PGBENCH_LOG_MIB)
    stack.callback(cluster.abort)
    cluster.start(PGBENCH_SCALE)
    cluster.checkpoint()

    def measured(clients: int, seconds: float) -> Done:
        cluster.pgbench("-n", "-c", str(clients), "-T", str(math.ceil(seconds)))
        told = place.log.read_text(errors="replace")
        [count] = last(r"transactions actually processed: (\d+)", told)
        [rate] = last(r"tps = ([\d.]+)", told)
        return Done(int(count), float(rate))

    return measured


MAILS, MAILS_AT_FIRST = 1000, 800
MAIL_BYTES_MEAN, MAIL_BYTES_GAMMA = 16384, 1.5
APPENDED_BYTES_MAX = 16384


def mail(_: ExitStack, folder: Path) -> Measured:
    """Do what filebench's varmail.f says of a mail server, in its default size.

    A mailer deletes a mail; creates one, appends to it and fsyncs it; reads one whole, appends to
    it and fsyncs it; reads one whole. All are files of one folder, and each mailer, a process, has
    its share of them (filebench's threads share all, but never use one at the same time).
    """
    chance = random.Random(0)
    for number in range(MAILS_AT_FIRST):
        mean = MAIL_BYTES_MEAN / MAIL_BYTES_GAMMA
        size = int(chance.gammavariate(MAIL_BYTES_GAMMA, mean))
        (folder / str(number)).write_bytes(chance.randbytes(size))

    def measured(mailers: int, seconds: float) -> Done:
        each = [(folder, range(first, MAILS, mailers), seconds) for first in range(mailers)]
        with get_context("fork").Pool(mailers) as pool:
            done = pool.starmap(be_a_mailer, each, chunksize=1)
        return Done(sum(one.count for one in done), sum(one.a_second for one in done))

    return measured


def be_a_mailer(folder: Path, numbers: range, seconds: float) -> Done:
    """Work on the mails of these numbers; a mail is done with after two fsyncs."""
    chance = random.Random(numbers.start)
    mails = [folder / str(number) for number in numbers]
    there = [path for path in mails if path.exists()]
    free = [path for path in mails if path not in there]
    text = memoryview(chance.randbytes(APPENDED_BYTES_MAX))
    done, begin = 0, time.monotonic()
    while time.monotonic() < begin + seconds:
        free.append(there.pop(chance.randrange(len(there))))
        free[-1].unlink()
        there.append(free.pop(chance.randrange(len(free))))
        receive(there[-1], some(text, chance))
        reply(chance.choice(there), some(text, chance))
        with chance.choice(there).open("rb", buffering=0) as file:
            file.readall()
        done += 1
    return Done(done, done / (time.monotonic() - begin))


def some(text: memoryview, chance: random.Random) -> memoryview:
    """Return a part of it, of random length."""
    return text[: chance.randint(1, len(text))]


def receive(path: Path, text: memoryview) -> None:
    """Create a mail and make it durable."""
    with path.open("xb", buffering=0) as file:
        file.write(text)
        os.fsync(file.fileno())


def reply(path: Path, text: memoryview) -> None:
    """Read a mail whole, append to it and make that durable."""
    with path.open("a+b", buffering=0) as file:
        file.seek(0)
        file.readall()
        file.write(text)
        os.fsync(file.fileno())


def last(pattern: str, text: str) -> tuple[str, ...]:
    """Return what the groups of the pattern found where it matches last."""
    found = list(re.finditer(pattern, text))
    if not found:
        message = f"a program did not say {pattern!r}"
        raise BenchError(message)
    return found[-1].groups()
