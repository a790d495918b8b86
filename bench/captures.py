"""Traces of what real programs write through a mounted streamfs, with the contexts of their files.

Nothing tags anything while it is recorded: vStreams are the contexts the filesystem finds by
itself, and streams are off.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.emulated.folders import Folders
from bench.emulated.run import PROGRAMS, WorkloadClient
from bench.paths import BIN
from bench.programs.place import unprivileged_user
from bench.programs.plan import FULL
from bench.programs.servers import Etcd, MariaDb, not_installed
from bench.system import output_of, start, unmount, wait_until

_SIZE = 3 << 30  # of the device; sparse


@dataclass(frozen=True)
class Work:
    """Programs that run together, and for how many rounds."""

    programs: tuple[str, ...]
    rounds: int


WORKS = {
    "SQLite": Work(("sqlite",), 30),
    "PostgreSQL": Work(("postgres",), 14),
    "RocksDB": Work(("rocksdb",), 20),
    "logs": Work(("logs",), 60),
    "source trees": Work(("trees",), 120),
    "git": Work(("git",), 60),
    "MariaDB": Work(("mariadb",), 6),
    "etcd": Work(("etcd",), 16),
    "all mixed": Work((*PROGRAMS, "git", "build"), 8),
}


# These are recorded as well, but are no part of the test set.
MORE_WORKS = {"SQLite WAL": Work(("sqlite-wal",), 60)}
_ALL = {**WORKS, **MORE_WORKS}
_SERVERS = {server.name: server.programs for server in (MariaDb, Etcd)}


def why_not(name: str) -> str | None:
    """Say why a work cannot be done here; None if it can."""
    return not_installed([each for one in _ALL[name].programs for each in _SERVERS.get(one, ())])


@dataclass(frozen=True)
class Capture:
    """A recorded trace and what is known of its vStreams."""

    trace: Path
    vstreams: Path  # streamctl streams --json


@contextmanager
def capture(name: str, seed: int) -> Iterator[Capture]:
    """Run a work once and give its trace; BenchError if something fails."""
    with ExitStack() as outer:
        folders = _folders(outer)
        trace, vstreams = folders.work / "trace", folders.work / "vstreams.json"
        work = _ALL[name]
        with ExitStack() as stack:
            mount = _mount(stack, folders, trace)
            client = WorkloadClient(stack, mount, None, FULL, folders, work.programs, seed)
            client.ask("prepare")
            for number in range(1, work.rounds + 1):
                client.ask("round", number=number)
            client.ask("close")
            output_of([BIN / "streamctl", "sync", mount])
            vstreams.write_text(output_of([BIN / "streamctl", "streams", "--json", mount]))
        yield Capture(trace, vstreams)


def _folders(stack: ExitStack) -> Folders:
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and shutil.disk_usage(memory).free > _SIZE else None
    work = Path(tempfile.mkdtemp(prefix="streamfs-capture-", dir=place))
    shared = Path(tempfile.mkdtemp(prefix="streamfs-capture-"))
    shared.chmod(0o755)
    for path in (work, shared):
        stack.callback(shutil.rmtree, path, ignore_errors=True)
    return Folders(images=work, work=work, shared=shared)


def _mount(stack: ExitStack, folders: Folders, trace: Path) -> Path:
    data, meta = folders.images / "DATA", folders.images / "META"
    data.touch()
    os.truncate(data, _SIZE)
    mount = folders.shared / "mount"
    mount.mkdir()
    output_of([BIN / "mkfs.streamfs", "--mean-file-size", "16K", "--meta", meta, data])
    # Early copies cost NAND bytes, and when they happen depends on the machine's pace.
    options = [f"meta={meta}", f"trace={trace}", "idle_work=off"]
    options += ["allow_other"] if os.geteuid() == 0 else []
    log = folders.work / "streamfs.log"
    server = start(stack, [BIN / "streamfs", data, mount, "-f", "-o", ",".join(options)], log, 60)
    stack.callback(unmount, ["fusermount3", "-u"], mount)
    wait_until(lambda: os.path.ismount(mount), "streamfs", server, log)
    if unprivileged_user() is not None:
        mount.chmod(0o755)
    return mount
