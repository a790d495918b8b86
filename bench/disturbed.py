"""A program at work on a mount whose daemon is killed, stopped and started again, or is not.

The models that the daemon publishes may be corrupted as well.

Rounds are the same in every run: pages appended to a log that comes round, pages overwritten at
random, files made and deleted whole; a device small and full enough to collect its garbage.
"""

import math
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from bench.mounts import streamfs_on_ssd
from bench.paths import BIN, VENV_BIN
from bench.ssd import PAGE_BYTES, Ssd
from bench.streamctl import status
from bench.system import BenchError, finish, output_of, start, wait_until

from classifierd import _core
from classifierd.control import ControlClient, socket_path

MIB = 1 << 20
DEVICE_MIB, TABLE_MIB, LOG_MIB, FILES, FILE_KIB = 48, 18, 2, 16, 256
BLOCK_PAGES = 16  # little beside the spare, though each pStream has two open ones
FREE_MIB = 5  # of the filesystem's: what was deleted is free again a little later
SYNC_EVERY, FILE_EVERY = 16, 8  # rounds
WARM_UP_TABLES = 16  # published before anything is measured: the device was written twice by then
WAIT_SECONDS = 300.0
STOPPED_ROUNDS = 50  # go by while the daemon is stopped
# A killed daemon must have saved its state, or each successor would begin without one.
CONFIG = "[daemon]\nsave_seconds = 1\n[learner]\nepoch_pages = 2048\n"


@dataclass(frozen=True)
class Disturbed:
    """The outcome of a run."""

    rounds: int
    waf: float
    latencies_ms: npt.NDArray[np.float64]  # of each call that wrote or waited
    daemons: int  # started
    corruptions: int  # models published with wrong bytes
    status: dict[str, Any]  # of the filesystem, in the end
    shortest_stop_ms: float  # infinite where the daemon was never stopped

    @property
    def tables(self) -> int:
        """Return how many the filesystem went by one after the other."""
        return int(self.status["model"]["generation"])

    @property
    def p99_ms(self) -> float:
        """Return what one call in a hundred takes longer than."""
        return float(np.percentile(self.latencies_ms, 99))

    def beyond(self, limit_ms: float) -> float:
        """Return the share of the calls that took longer."""
        return float((self.latencies_ms > limit_ms).mean())


class ModelMemory:
    """The model area of a mount, in the hands of a program that was its daemon once."""

    HEADER_BYTES, ACTIVE_AT = 64, 32  # base/wire/model_table.h
    CHECKSUM_AT, SUMMED_AT = 12, 48  # in a buffer

    def __init__(self, mount: Path) -> None:
        self._random, self._corrupted = random.Random(2), 0
        with ControlClient(socket_path(mount)) as client:
            attachment = client.attach()
            self._map = mmap.mmap(attachment.model_fd, _core.MODEL_BYTES)
            attachment.close()

    def corrupt(self) -> int:
        """Publish the model again with a few wrong bytes; returns its generation.

        Half of them have a right checksum, so the filesystem judges their fields.
        """
        before = int(struct.unpack_from("<Q", self._map, self.ACTIVE_AT)[0])
        size, generation = _core.MODEL_BUFFER_BYTES, before + 1
        last, at = (self.HEADER_BYTES + each % 2 * size for each in (before, generation))
        self._map[at : at + size] = self._map[last : last + size]
        struct.pack_into("<Q", self._map, at, generation)
        for _ in range(self._random.randint(1, 8)):
            # Half of them among the fields before the arrays.
            end = self._random.choice((self.SUMMED_AT + 64, size))
            place = at + self._random.randrange(self.SUMMED_AT, end)
            self._map[place] ^= self._random.randint(1, 255)
        self._corrupted += 1
        if self._corrupted % 4 > 1:  # with and without a living daemon
            checksum = _core.crc32c(self._map[at + self.SUMMED_AT : at + size])
            struct.pack_into("<I", self._map, at + self.CHECKSUM_AT, checksum)
        struct.pack_into("<Q", self._map, self.ACTIVE_AT, generation)
        return generation


@dataclass
class Program:
    """The rounds' author. Raises OSError for any I/O error, BenchError for a wrong byte."""

    folder: Path
    rounds: int = 0
    latencies_ms: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Write the table once."""
        self._random = random.Random(1)
        self._table = os.open(self.folder / "table", os.O_RDWR | os.O_CREAT)
        self._log = os.open(self.folder / "log", os.O_RDWR | os.O_CREAT)
        self._at = 0
        for at in range(TABLE_MIB):
            os.pwrite(self._table, bytes(MIB), at * MIB)
        os.fsync(self._table)

    def close(self) -> None:
        """Close its files."""
        os.close(self._table)
        os.close(self._log)

    def round(self) -> None:
        """Do one round."""
        page = self.rounds.to_bytes(8, "little") * (PAGE_BYTES // 8)
        with self._timed():
            os.pwrite(self._log, page[: PAGE_BYTES // 3], self._at)
            os.fdatasync(self._log)
        self._at = (self._at + PAGE_BYTES // 3) % (LOG_MIB * MIB)
        pages = TABLE_MIB * MIB // PAGE_BYTES
        for _ in range(4):
            near = self._random.random() < 0.8
            place = self._random.randrange(pages // 8 if near else pages) * PAGE_BYTES
            with self._timed():
                os.pwrite(self._table, page, place)
            if os.pread(self._table, PAGE_BYTES, place) != page:
                message = f"page {place // PAGE_BYTES} of the table is not what was written"
                raise BenchError(message)
        if self.rounds % SYNC_EVERY == 0:
            with self._timed():
                os.fdatasync(self._table)
        if self.rounds % FILE_EVERY == 0:
            with self._timed():
                self._replace(self._random.randrange(FILES))
        self.rounds += 1

    def _replace(self, number: int) -> None:
        path = self.folder / f"file-{number}"
        path.unlink(missing_ok=True)
        path.write_bytes(bytes(FILE_KIB << 10))

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.latencies_ms.append((time.perf_counter() - begun) * 1e3)


class Daemons:
    """Run one classifierd after another on a mount; none outlives the stack."""

    def __init__(self, stack: ExitStack, mount: Path, work: Path) -> None:
        self._mount, self._work, self._log = mount, work, work / "classifierd.log"
        self._stack = stack
        self.started = 0
        self.shortest_stop_ms = math.inf
        self.last: subprocess.Popen[bytes]
        (work / "config.toml").write_text(CONFIG)

    def begin(self) -> None:
        """Start the next one and wait until it is attached."""
        self.started += 1
        words: list[str | Path] = [VENV_BIN / "python", "-m", "classifierd", "run", self._mount]
        words += ["--state", self._work / "state", "--config", self._work / "config.toml"]
        daemon = start(self._stack, words, self._log, 0)
        wait_until(lambda: self._attached() >= self.started, "classifierd", daemon, self._log)
        self.last = daemon

    def _attached(self) -> int:
        return self._log.read_text(errors="replace").count("attached: ")

    def first_words(self, tables: int) -> None:
        """Start one and wait until the filesystem goes by what it has learned."""
        self.begin()
        wait_until(lambda: generation(self._mount) >= tables, "tables", self.last, self._log)


def generation(mount: Path) -> int:
    """Return which table the filesystem took over last."""
    model: dict[str, int] = status(mount)["model"]
    return model["generation"]


class Corruption:
    """Publishes wrong bytes each time that it is called, and waits until they were looked at."""

    def __init__(self, mount: Path) -> None:
        self._mount, self._memory = mount, ModelMemory(mount)
        self.times = 0

    def __call__(self) -> None:
        """Return once the filesystem looked at the model, or at a later one."""
        generation, deadline = self._memory.corrupt(), time.monotonic() + WAIT_SECONDS
        self.times += 1
        while looked_at(self._mount) < generation:
            if time.monotonic() > deadline:
                message = "the filesystem looks at no model"
                raise BenchError(message)
            time.sleep(0.05)


def looked_at(mount: Path) -> int:
    """Return which model the filesystem adopted or refused last."""
    model: dict[str, int] = status(mount)["model"]
    return model["looked_at"]


def disturb(
    daemons: Daemons,
    program: Program,
    times: int,
    stop_seconds: float,
    over: threading.Event,
    corrupt: Callable[[], None] | None,
) -> None:
    """Kill the daemon so many times: at once, stopped, after a while, by turns; start the next.

    ``corrupt`` is called once for each kill: while the daemon lives, or after its death, when none
    publishes another model at once.
    """
    for number in range(times):
        if corrupt is not None and number % 2 == 0:
            corrupt()
        if number % 3 == 1:
            daemons.last.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        if number % 3 != 0:
            _wait_rounds(program, STOPPED_ROUNDS * (number % 3), over)
        if number % 3 == 1:
            over.wait(begun + stop_seconds - time.monotonic())
            lasted = (time.monotonic() - begun) * 1e3
            daemons.shortest_stop_ms = min(daemons.shortest_stop_ms, lasted)
        daemons.last.kill()
        finish(daemons.last, WAIT_SECONDS)
        if corrupt is not None and number % 2 == 1:
            corrupt()
        daemons.begin()


def _wait_rounds(program: Program, rounds: int, over: threading.Event) -> None:
    wanted, deadline = program.rounds + rounds, time.monotonic() + WAIT_SECONDS
    while program.rounds < wanted and not over.is_set():
        if time.monotonic() > deadline:
            message = "the program waits for the daemon"
            raise BenchError(message)
        time.sleep(0.005)


def run(
    work: Path,
    *,
    times: int,
    rounds: int,
    warm_up_tables: int = WARM_UP_TABLES,
    stop_seconds: float = 0.0,
    corrupt: bool = False,
) -> Disturbed:
    """Work for `rounds`, or longer: until the daemon was killed so many times.

    Before, the daemon publishes `warm_up_tables`, of which nothing is measured. It stays stopped
    for `stop_seconds`, or longer: for STOPPED_ROUNDS. With `corrupt`, a model with wrong bytes is
    published before or after each kill.
    Raises BenchError or OSError for whatever the program or the filesystem suffers from that.
    """
    work.mkdir()
    with ExitStack() as stack:
        ssd = Ssd(work / "ssd", "--size", f"{DEVICE_MIB}M", "--pages-per-block", BLOCK_PAGES)
        # Early copies cost NAND bytes, and when they happen depends on the machine's pace.
        mount = streamfs_on_ssd(stack, ssd.path, work, "idle_work=off")
        program = Program(mount)
        stack.callback(program.close)
        _fill(mount)
        corruption = Corruption(mount) if corrupt else None
        daemons = Daemons(stack, mount, work)
        _work_while(program, partial(daemons.first_words, warm_up_tables), 0)
        output_of([BIN / "streamctl", "sync", mount])
        ssd.reset()
        program.latencies_ms.clear()
        begun, over = program.rounds, threading.Event()
        beside = partial(disturb, daemons, program, times, stop_seconds, over, corruption)
        _work_while(program, beside, rounds, over)
        output_of([BIN / "streamctl", "sync", mount])
        latencies = np.array(program.latencies_ms)
        waf = ssd.counters().waf
        rounds = program.rounds - begun
        stop_ms = daemons.shortest_stop_ms
        corruptions = corruption.times if corruption is not None else 0
        return Disturbed(
            rounds, waf, latencies, daemons.started, corruptions, status(mount), stop_ms
        )


def _work_while(
    program: Program, beside: Callable[[], None], rounds: int, over: threading.Event | None = None
) -> None:
    """Work until `beside`, in a thread of its own, is done, and for so many rounds at least."""
    failed: list[Exception] = []

    def kept() -> None:
        try:
            beside()
        except Exception as error:
            failed.append(error)

    thread, wanted = threading.Thread(target=kept), program.rounds + rounds
    thread.start()
    try:
        while thread.is_alive() or program.rounds < wanted:
            program.round()
    finally:
        if over is not None:
            over.set()
        thread.join()
    if failed:
        raise failed[0]


def _fill(mount: Path) -> None:
    """Write what stays until FREE_MIB are left beside the log."""
    for number in range(FILES):
        (mount / f"file-{number}").write_bytes(bytes(FILE_KIB << 10))
    output_of([BIN / "streamctl", "sync", mount])
    room = shutil.disk_usage(mount).free - (LOG_MIB + FREE_MIB) * MIB
    with (mount / "ballast").open("wb") as file:
        for _ in range(int(room / MIB)):
            file.write(bytes(MIB))
    output_of(["sync", "-f", mount])
