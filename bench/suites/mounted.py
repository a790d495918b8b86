"""Write amplification of jobs on a mount: streams off, learned, labelled; and the oracle's bound.

The emulated SSD has 7 % spare. WAF is counted after a warm-up. The bound is the trace of the run
without streams, replayed with true lifetimes. Labelled runs of a job that has one file without
labels keep each part of it in a file of its own.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import lifetime_jobs as jobs
from bench.emulated.controls import Way, mounted
from bench.emulated.folders import fresh_folders
from bench.emulated.replays import share_closed
from bench.emulated.ssd import STREAMS, replay_waf, target_live_bytes
from bench.lifetime_jobs import Folder, Job
from bench.paths import BIN, ROOT
from bench.programs.plan import QUICK
from bench.ssd import PAGE_BYTES, Ssd
from bench.system import output_of
from bench.table import Row, Target, main, row

SEED = 1
WORTH_A_TARGET = 0.05  # WAF that labels save
GUARD = 0.004  # of the device: live data that the metadata log takes beside what it has at first


@dataclass(frozen=True)
class Work:
    """A job and its targets without labels: shares of the gap, and of what labels save."""

    name: str
    job: Job
    labels: int  # lifetimes that can be labelled
    closed: float | None = None
    of_labels: float | None = None


WORKS = (
    Work("four files, lifetimes 1:10:33:55", jobs.sequential((1, 10, 33, 55)), 4, 0.85),
    Work("three files, lifetimes 2:101:709", jobs.sequential((2, 101, 709)), 3, 0.85),
    Work("whole files", jobs.whole_files, 3, of_labels=0.7),
    Work("Zipf, one file", jobs.zipf, 4, of_labels=0.7),
    Work("hot and cold, one file", jobs.hot_and_cold, 2, of_labels=0.7),
)
WAYS = {
    "off": Way(),
    "learned": Way(placement="learned", daemon=True),
    "labels": Way(placement="hints"),
    "labels and learned": Way(placement="hints", daemon=True),
}


@dataclass(frozen=True)
class Size:
    """How large the device is, and how much is written."""

    device_bytes: int
    block_pages: int
    warm_up: float  # capacities
    counted: float


FULL = Size(512 << 20, 64, 6, 6)
SMALL = Size(256 << 20, 64, 3, 3)


@dataclass(frozen=True)
class Ran:
    """WAF over the counted writes of a run, and the bound, if its trace was recorded."""

    waf: float
    spare: float
    kind: str  # the model that served in the end; empty: none
    bound: float | None


def measure(quick: bool) -> list[Row]:
    """Return every row."""
    size = SMALL if quick else FULL
    return [each for work in WORKS for each in rows(work, size)]


def rows(work: Work, size: Size) -> Iterator[Row]:
    """Yield a job's figures."""
    ran = {name: run(work, way, size) for name, way in WAYS.items()}
    off, bound = ran["off"].waf, ran["off"].bound
    if bound is None:
        raise AssertionError
    yield row(f"{work.name}: bound", bound, "WAF")
    for name, each in ran.items():
        unit = ", ".join(filter(None, ["WAF", f"spare {each.spare:.3f}", each.kind]))
        yield row(f"{work.name}: {name}", each.waf, unit)
    for name in ("learned", "labels", "labels and learned"):
        target = at_least(work.closed) if name == "learned" else None
        closed = share_closed(off, ran[name].waf, bound) or 0.0
        yield row(f"{work.name}: gap closed, {name}", closed, "of off to bound", target)
    saved = share_closed(off, ran["learned"].waf, ran["labels"].waf)
    target = at_least(work.of_labels) if off - ran["labels"].waf >= WORTH_A_TARGET else None
    yield row(f"{work.name}: saved, learned", saved or 0.0, "of what labels save", target)


def at_least(value: float | None) -> Target | None:
    """Return the target, if there is one."""
    return None if value is None else Target(value, at_least=True)


def run(work: Work, way: Way, size: Size) -> Ran:
    """Run a job on a fresh device; everything is undone at the end."""
    with fresh_folders(ROOT / "build" / "mounted", QUICK, keep=False) as folders, ExitStack() as up:
        options = {"--size": size.device_bytes, "--op": 0.03, "--streams": STREAMS}
        options["--pages-per-block"] = size.block_pages
        ssd = Ssd(folders.images / "ssd", *(str(w) for pair in options.items() for w in pair))
        control = mounted(up, way, ssd, folders, None)
        folder = Folder(control.mount, labelled=way.placement == "hints")
        if folder.labelled:
            label(control.mount, work.labels)
        counters = ssd.counters()
        wanted = target_live_bytes(counters) - counters.live_bytes - GUARD * size.device_bytes
        pages = int(min(wanted, free_bytes(control.mount) * (1 - GUARD))) // PAGE_BYTES
        up.callback(folder.close)
        writes = work.job(folder, pages, SEED)
        write(writes, int(pages * (1 + size.warm_up)))
        ssd.reset()
        write(writes, int(pages * size.counted))
        control.check_alive()
        counted, model = ssd.counters(), control.model_kind()
        share = ssd.pages_before_reset / ssd.pages_written()
        folder.close()
        trace = control.trace
        up.close()
        bound = None
        if trace is not None:
            physical = counted.physical_bytes
            bound = replay_waf(trace, "oracle", physical, size.block_pages, share)
        return Ran(counted.waf, counted.effective_spare, model, bound)


def free_bytes(mount: Path) -> int:
    """Return the free bytes of a mounted filesystem."""
    room = os.statvfs(mount)
    return room.f_bavail * room.f_frsize


def label(mount: Path, labels: int) -> None:
    """Make a folder for each lifetime and label it."""
    for number in range(labels):
        folder = mount / f"life-{number}"
        folder.mkdir()
        output_of([BIN / "streamctl", "hint", "--name", folder.name, folder])


def write(writes: Iterator[int], pages: int) -> None:
    """Let a job write so many pages, at least."""
    for written in writes:
        pages -= written
        if pages <= 0:
            return


if __name__ == "__main__":
    sys.exit(main("mounted", __doc__.splitlines()[0], measure))
