"""The workload as a process of its own: a JSON request a line on stdin, an answer a line on stdout.

Requests: ``{"op": "prepare"}``, ``{"op": "round", "number": N}``, ``{"op": "bytes"}``,
``{"op": "ballast", "bytes": N}`` (negative: delete), ``{"op": "close"}``. Each answer has
``"ok"`` and either ``"error"`` or what was asked for. It ends when stdin does.

A process of its own, so that its tree is exactly the programs of the workload: what they asked to
write can be summed, and nothing survives it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from bench.accounting import adopt_orphans, bytes_asked, descendants
from bench.programs.databases import Postgres
from bench.programs.developers import Build, Repository
from bench.programs.files import Ballast, Logs, Media, Names, Trees
from bench.programs.place import Place
from bench.programs.plan import Plan, to_plan
from bench.programs.rocksdb import RocksDb, RocksFill, RocksReadWhileWriting, RocksYcsbA
from bench.programs.servers import Etcd, MariaDb
from bench.programs.sqlite import Sqlite, SqliteRollback, SqliteWal, SqliteWalAndSorts

SQLITES = (Sqlite, SqliteWal, SqliteRollback, SqliteWalAndSorts)
ROCKS = (RocksDb, RocksFill, RocksReadWhileWriting, RocksYcsbA)


class Program(Protocol):
    """A program of the workload."""

    name: str

    def prepare(self) -> None:
        """Make its data."""

    def round(self, number: int) -> None:
        """Do one round's operations."""

    def close(self) -> None:
        """Stop what runs."""


class Workload:
    """All programs, round by round."""

    def __init__(
        self, place: Place, plan: Plan, seed: int, only: frozenset[str], settle: list[str]
    ) -> None:
        self.mount, self.settle = place.mount, settle
        everything: list[Program] = [
            Postgres(place, plan.postgres, seed),
            *(each(place, plan.sqlite, seed) for each in SQLITES),
            *(each(place, plan.rocksdb, seed) for each in ROCKS),
            Logs(place, plan.files, seed),
            Media(place, plan.files, seed),
            Trees(place, plan.files, seed),
            Names(place, plan.files),
            Repository(place, plan.files, seed),
            Build(place, plan.files, seed),
            MariaDb(place, plan.mariadb, seed),
            Etcd(place, plan.etcd, seed),
        ]
        self.programs = [p for p in everything if p.name in only]
        self.ballast = Ballast(place, seed)

    def prepare(self) -> dict[str, float]:
        """Make all data, one program after the other: the order of the device's first fill."""
        seconds = {program.name: _timed(program.prepare) for program in self.programs}
        self._sync()
        return seconds

    def round(self, number: int) -> dict[str, float]:
        """Run one round; return the seconds each program took.

        PostgreSQL works all the time, the others beside it one after the other: all at once they
        would make the peak of live data, and so the spare, a matter of luck.
        """
        lanes = _apart(self.programs)
        with ThreadPoolExecutor(len(lanes)) as pool:
            calls = [pool.submit(_round_of, lane, number) for lane in lanes]
            seconds = {name: value for call in calls for name, value in call.result().items()}
        # The round's writes reach the device within the round, on every filesystem.
        self._sync()
        return seconds

    def change_ballast(self, size: int) -> None:
        """Write so many bytes more, or delete (negative); then the device knows of it."""
        if size >= 0:
            self.ballast.add(size)
        else:
            self.ballast.remove(-size)
            self._sync()
            if self.settle:
                subprocess.run(self.settle, check=True, stdout=subprocess.DEVNULL)

    def _sync(self) -> None:
        subprocess.run(["sync", "-f", self.mount], check=True)

    def close(self) -> None:
        """Stop all programs, the failed included."""
        for program in self.programs:
            program.close()

    def abort(self) -> None:
        """Stop all programs at once and leave no process behind."""
        for program in self.programs:
            if isinstance(program, Postgres):
                program.abort()
        _end_all()


def _apart(programs: list[Program]) -> tuple[list[Program], list[Program]]:
    """Split the programs into those that work all the time and those that take turns."""
    steady: list[Program] = [each for each in programs if isinstance(each, Postgres)]
    return steady, [program for program in programs if program not in steady]


def _timed(call: Callable[..., None], *arguments: int) -> float:
    start = time.monotonic()
    call(*arguments)
    return round(time.monotonic() - start, 2)


def _round_of(lane: list[Program], number: int) -> dict[str, float]:
    return {program.name: _timed(program.round, number) for program in lane}


def answer(workload: Workload, request: dict[str, Any]) -> dict[str, Any]:
    """Do what one request asks."""
    match request["op"]:
        case "prepare":
            return {"seconds": workload.prepare()}
        case "round":
            return {"seconds": workload.round(int(request["number"]))}
        case "ballast":
            workload.change_ballast(int(request["bytes"]))
        case "close":
            workload.close()
    return {"bytes": bytes_asked()}


def _end_all() -> None:
    """End what is left of the tree: after an error, or when the demo was interrupted."""
    for pid in list(descendants(os.getpid())):
        if pid != os.getpid():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def main() -> int:
    """Serve requests until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the demo's business, which ends us
    adopt_orphans()
    spec = json.loads(sys.argv[1])
    paths = {name: Path(spec[name]) for name in ("mount", "scratch", "log")}
    stream_run = Path(spec["stream_run"]) if spec["stream_run"] else None
    place = Place(**paths, stream_run=stream_run, user=spec["user"])
    workload = Workload(
        place, to_plan(spec["plan"]), spec["seed"], frozenset(spec["only"]), spec["settle"]
    )

    def stop_now(*_: object) -> None:
        workload.abort()
        os._exit(1)

    signal.signal(signal.SIGTERM, stop_now)
    try:
        for line in sys.stdin:
            try:
                reply = {"ok": True, **answer(workload, json.loads(line))}
            except Exception as error:
                reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), flush=True)
    finally:
        workload.abort()
    return 0


if __name__ == "__main__":
    sys.exit(main())
