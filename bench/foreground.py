"""The effect of maintenance on programs: latencies of direct writes that come in bursts.

The emulated SSD answers no sooner than its flash would. With maintenance the SSD collects garbage
in the pauses, and trims and maintenance are asked for while bursts go on; without, neither.
"""

import mmap
import os
import random
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.mounts import streamfs_on_ssd
from bench.paths import BIN
from bench.ssd import PAGE_BYTES, Ssd
from bench.system import BenchError

MIB = 1 << 20
DEVICE_MIB, FILE_MIB, CHURN_MIB = 256, 208, 1
BURST_PAGES, PAUSE_SECONDS = 256, 0.5
WARM_UP_PAGES = 2 * FILE_MIB * MIB // PAGE_BYTES  # garbage has been collected for long by then
ASKED_EVERY = 4  # bursts
JOBS = ("trim", "maintain")


@dataclass(frozen=True)
class Noticed:
    """Latencies of the writes, and what the flash was programmed with meanwhile."""

    p50_us: float
    p99_us: float
    nand_bytes: int


def noticed(work: Path, bursts: int, *, maintained: bool) -> Noticed:
    """Measure one mount on an SSD of its own."""
    with ExitStack() as stack:
        ssd = Ssd(work / "ssd", "--size", f"{DEVICE_MIB}M", "--force")
        idle_work = f"idle_work={'always' if maintained else 'off'}"
        mount = streamfs_on_ssd(stack, ssd.path, work, "real_time", idle_work)
        writer = _Writer(stack, mount)
        writer.write(WARM_UP_PAGES)
        before = ssd.counters()
        latencies: list[float] = []
        for burst in range(bursts):
            _churn(mount, burst)
            time.sleep(PAUSE_SECONDS)
            asked = _ask(mount) if maintained and burst % ASKED_EVERY == 0 else []
            latencies += writer.write(BURST_PAGES)
            for job in asked:
                if job.wait() != 0:
                    message = f"streamctl {' or '.join(JOBS)}: exit {job.returncode}"
                    raise BenchError(message)
        after = ssd.counters()
    if maintained == (after.idle_gc_bytes == before.idle_gc_bytes):
        message = "the SSD was to work in the pauses only where it is maintained"
        raise BenchError(message)
    p50, p99 = np.percentile(np.array(latencies), (50, 99))
    return Noticed(float(p50), float(p99), after.nand_bytes - before.nand_bytes)


def _churn(mount: Path, burst: int) -> None:
    """Replace a file, so that there is something to trim."""
    (mount / "churn").unlink(missing_ok=True)
    (mount / "churn").write_bytes(bytes([burst % 256]) * CHURN_MIB * MIB)


def _ask(mount: Path) -> list[subprocess.Popen[bytes]]:
    words = [[str(BIN / "streamctl"), job, str(mount)] for job in JOBS]
    return [subprocess.Popen(each, stdout=subprocess.DEVNULL) for each in words]


class _Writer:
    """Overwrites pages of one file at random, each past the page cache."""

    def __init__(self, stack: ExitStack, mount: Path) -> None:
        self._page = mmap.mmap(-1, PAGE_BYTES)  # aligned
        self._random = random.Random(1)
        path = mount / "table"
        path.write_bytes(bytes(FILE_MIB * MIB))
        self._file = os.open(path, os.O_WRONLY | os.O_DIRECT)
        stack.callback(os.close, self._file)

    def write(self, pages: int) -> list[float]:
        """Return what each took, in µs."""
        took = []
        for _ in range(pages):
            self._page[:8] = self._random.randbytes(8)
            place = self._random.randrange(FILE_MIB * MIB // PAGE_BYTES) * PAGE_BYTES
            begun = time.perf_counter()
            os.pwritev(self._file, [self._page], place)
            took.append((time.perf_counter() - begun) * 1e6)
        return took
