"""A learner in this process, fed as the daemon feeds its own, and a simulated device beside it."""

import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

# As the daemon does.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
from bench.system import BenchError

from classifierd import _core
from classifierd.clusters import ChunkClusters
from classifierd.config import Config, DaemonSettings
from classifierd.contest import CANDIDATES, Contest, Device
from classifierd.contexts import VStream
from classifierd.knowledge import Identity, Knowledge
from classifierd.learner import Settings, epoch_pages_for
from classifierd.records import CHUNK_PAGES, KIND_TRIM, Records, make, make_overwrites
from classifierd.traces import telemetry
from streamfs_lab.policies import Workload, epochs, learned
from streamfs_lab.workloads import WORKLOADS

Floats = npt.NDArray[np.float64]

PAGES_A_SECOND = 50_000
POLLS_A_SECOND = 20
STREAMS = 8
SPARE, BLOCK_PAGES = 0.07, 256
ORACLE_EDGES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 4)  # lifetimes ÷ what is live
WINDOW = 0.01  # of what is live: WAF is looked at so often
AHEAD = 25  # windows; fewer say more of what is collected at the moment
SOON = 5  # windows, of a disturbance that should be short
POLL_RECORDS = 1 << 17  # the daemon reads no more at once
HOURS = 24


def knowledge(pages: int, live: int, candidates: tuple[str, ...] = CANDIDATES) -> Knowledge:
    """Return what the daemon knows of a filesystem at first; it speaks to nobody, keeps nothing."""
    config = Config(daemon=DaemonSettings(candidates=candidates))
    device = Device(live, STREAMS, SPARE, BLOCK_PAGES)
    return Knowledge(Identity(bytes(16), pages), device, config, None)


def feed(known: Knowledge, records: Records) -> float:
    """Learn, closing epochs as they fill; returns the CPU seconds of the longest epoch's end."""
    at, longest = 0, 0.0
    while at < len(records):
        at += known.feed(records[at:])
        if known.epoch_due:
            begun = time.process_time()
            known.end_epoch()
            longest = max(longest, time.process_time() - begun)
    return longest


def overwrites(live: int, pages: int, request_pages: int, seed: int) -> Records:
    """Requests at random, nine in ten of them to a tenth of what is live; all of it written once.

    As the filesystem reports them: about `pages` pages after the first `live`.
    """
    rng = np.random.default_rng(seed)
    slots, count = live // request_pages, pages // request_pages
    hot = rng.random(count) < 0.9
    at = np.where(hot, rng.integers(0, slots // 10, count), rng.integers(0, slots, count))
    first = np.arange(slots)
    blocks = np.concatenate([first, at]).astype(np.uint64) * np.uint64(request_pages)
    return telemetry(make(blocks, request_pages))


def core_share(known: Knowledge, live: int, request_pages: int, pages: int) -> float:
    """Return the share of a core that PAGES_A_SECOND take, once all was written twice."""
    records = overwrites(live, live + pages, request_pages, 1)
    measured = len(records) - pages // request_pages
    poll = PAGES_A_SECOND // POLLS_A_SECOND // request_pages
    feed(known, records[:measured])
    begun = time.process_time()
    for at in range(measured, len(records), poll):
        feed(known, records[at : at + poll])
    return (time.process_time() - begun) / pages * PAGES_A_SECOND


@dataclass(frozen=True)
class Epoch:
    """The longest end of an epoch over many chunks; memory is what the learner had at most."""

    seconds: float
    memory_mib: float


def epoch_over(chunks: int, candidates: tuple[str, ...]) -> Epoch:
    """Measure epochs' ends while a page of each of so many chunks is overwritten, over and over.

    Runs in a process of its own.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as own:
        return own.submit(_epoch_over, chunks, candidates).result()


def _epoch_over(chunks: int, candidates: tuple[str, ...]) -> Epoch:
    ChunkClusters().fit(np.random.default_rng(1).random((64, 5)).astype(np.float32))
    order = np.random.default_rng(1).permutation(chunks).astype(np.uint64)
    records = make_overwrites(order * np.uint64(CHUNK_PAGES), 1, age=_core.AGE_OLD)
    before = _resident_mib()
    known, longest = knowledge(chunks * CHUNK_PAGES, chunks, candidates), 0.0
    # Chunks are grouped again once as many pages were written as there are chunks.
    for start in (0, chunks):
        records["clock_pages"] = np.arange(start, start + chunks)
        for at in range(0, chunks, POLL_RECORDS):
            longest = max(longest, feed(known, records[at : at + POLL_RECORDS]))
    return Epoch(longest, _resident_mib("VmHWM") - before)


def _resident_mib(which: str = "VmRSS") -> float:
    """``VmHWM``: the most it was; what getrusage says may be what this process's parent had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{which}:"):
            return int(line.split()[1]) / 1024
    message = "/proc/self/status does not say how much is resident"
    raise BenchError(message)


def tagged(records: Records, live: int) -> npt.NDArray[np.uint8]:
    """Return what is learned as it goes: a pStream each page written."""
    workload = Workload(records, [VStream(0)], STREAMS, live)
    return learned(workload, SPARE, BLOCK_PAGES).tags["learned"]


def tagged_on_a_mount(records: Records, live: int) -> npt.NDArray[np.uint8]:
    """Return what a daemon places that comes to a full device: a pStream each page written."""
    device = Device(live, STREAMS, _whole_spare(live), BLOCK_PAGES)
    end = int((records["block"] + records["pages"]).max())
    settings = Settings(epoch_pages=epoch_pages_for(live))
    contest = Contest(end, device, settings, CANDIDATES, "life-table")
    contest.know([VStream(0)])
    contest.fill(live)
    return np.concatenate([tags[server] for tags, server, _ in contest.run(records)])


def tagged_knowing(records: Records, live: int) -> npt.NDArray[np.uint8]:
    """Return what an oracle that tags what the host writes places: by true lifetimes."""
    shares = _core.PageTrace(records).lifetimes().astype(np.float64) / live
    return np.searchsorted(np.array(ORACLE_EDGES), shares, side="right").astype(np.uint8)


def _whole_spare(live: int) -> float:
    return SPARE + _core.RESERVE_BLOCKS * BLOCK_PAGES / live


def pages_of(records: Records) -> int:
    """Return how many pages are written."""
    return int(records["pages"][records["kind"] != KIND_TRIM].sum(dtype=np.int64))


def waf_by_window(records: Records, tags: npt.NDArray[np.uint8], live: int) -> Floats:
    """Return the WAF of each window of WINDOW of what is live, on a device that begins empty."""
    device = _core.Shadow(live, 1, STREAMS, _whole_spare(live), BLOCK_PAGES, live)
    out, at, copied, written = [], 0, 0, 0
    for part in epochs(records, int(live * WINDOW)):
        pages = pages_of(part)
        device.feed(part, tags[at : at + pages])
        at += pages
        out.append(1 + (device.copied[0] - copied) / max(device.written - written, 1))
        copied, written = device.copied[0], device.written
    return np.array(out)


def settled(waf: Floats, steady: float) -> float:
    """Return after how much, in shares of what is live, WAF is within 10 % of steady.

    The mean over the AHEAD windows that follow counts. Otherwise return the length of ``waf``.
    """
    ahead = np.convolve(waf, np.full(AHEAD, 1 / AHEAD), mode="valid")
    near = np.flatnonzero(ahead <= 1.1 * steady)
    return (int(near[0]) if len(near) else len(waf)) * WINDOW


def disturbed(waf: Floats, steady: float) -> float:
    """Return until when, in shares of what is live, WAF is ever more than 10 % above steady.

    Means over SOON windows count: about as fine as what is asked for. 0 if it never is.
    """
    means = np.convolve(waf, np.full(SOON, 1 / SOON), mode="valid")
    above = np.flatnonzero(means > 1.1 * steady)
    return (int(above[-1]) + SOON if len(above) else 0) * WINDOW


def shifting(live: int, phases: int, capacities: int, seed: int) -> Records:
    """A hot tenth that takes nine writes in ten, and is another tenth in each phase.

    A phase lasts for so many times what is live; all of it is written once before.
    """
    rng = np.random.default_rng(seed)
    count = live * capacities
    blocks = [np.arange(0, live)]
    for phase in range(phases):
        hot = rng.random(count) < 0.9
        near = rng.integers(0, live // 10, count) + phase * (live // 10)
        blocks.append(np.where(hot, near, rng.integers(0, live, count)))
    return telemetry(make(np.concatenate(blocks), 1))


@dataclass(frozen=True)
class Day:
    """A long run; hours are equal parts of it."""

    moved: float  # share of the volume that changes class in an hour, mean
    moved_most: float  # in an hour after the third
    moved_late: float  # in an hour after the eighth
    grown_mib: float  # resident memory from the eighth hour to the last


def day_of(live: int, pages: int) -> Day:
    """Learn from 24 hours of a mix of programs, so many pages in all.

    Runs in a process of its own.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as own:
        return own.submit(_day_of, live, pages).result()


def _classes(known: Knowledge) -> npt.NDArray[np.uint8]:
    """Return the class of each (vStream, shape), one after the other."""
    classes: npt.NDArray[np.uint8] = known.learner.table_[known.learner.row_of_].reshape(-1)
    return classes


def _day_of(live: int, pages: int) -> Day:
    raw, vstreams = WORKLOADS["log-tail-mix"](pages, 1, live)
    records = telemetry(raw)
    del raw
    known = knowledge(2 * live, live)
    known.know(vstreams)
    moved, memory, before = [], [], _classes(known)
    for hour in epochs(records, pages_of(records) // HOURS):
        for at in range(0, len(hour), POLL_RECORDS):
            feed(known, hour[at : at + POLL_RECORDS])
        cells, volume, *_ = known.learner.life.cells()
        table = _classes(known)
        changed = table[cells] != before[cells]
        moved.append(float(volume[changed].sum() / volume.sum()))
        memory.append(_resident_mib())
        before = table.copy()
    late = moved[3:HOURS]
    grown = memory[HOURS - 1] - memory[7]
    return Day(float(np.mean(late)), max(late), max(moved[8:HOURS]), grown)
