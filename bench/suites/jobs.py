"""Write amplification of the papers' jobs, run by fio on mounts of the papers' devices.

Each device is the paper's, smaller by its scale; the emulated SSD counts. A job writes as much as
its files hold, several times, and the second half counts. The way `hints` keeps each file in a
labelled folder, the way `contexts` in a folder without a label.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase

from bench.emulated.controls import Control, Way, mounted
from bench.emulated.folders import Folders, fresh_folders
from bench.emulated.run import Job
from bench.emulated.run import run as run_programs
from bench.paths import BIN, ROOT
from bench.programs.plan import QUICK
from bench.ssd import Counters, Ssd
from bench.suites.mounted import free_bytes
from bench.system import BenchError, output_of
from bench.table import Row, Target, main, row

OUTPUT = ROOT / "build" / "jobs"
REQUEST = 128 << 10
GUARD = 0.01  # of the mount's free bytes: room for the metadata log and ext4's own blocks
POLL_SECONDS = 0.05
WEIGHT = 100  # fio's flow: the requests of a writer, beside those of a reader
HELD_BACK_US = 100  # a thread that is ahead of the others sleeps this long; 0 would spin
HINTED, LEARNED, PARTITIONS = Target(1.02), Target(1.10), Target(1.05)


@dataclass(frozen=True)
class Reader:
    """Random readers beside the writers: how many, and requests read for each written."""

    processes: int
    reads_a_write: float


@dataclass(frozen=True)
class Work:
    """A paper's job: the files by their sizes in proportion, and the device."""

    name: str
    device: tuple[str, ...]  # options of ssd-sim create
    fill: float  # of the capacity that the host sees
    lifetimes: tuple[int, ...]  # sizes of the files, which are written equally often
    hinted: Target
    learned: Target | None = None
    saving: float | None = None  # the source's WAF without streams ÷ with
    faster: float | None = None  # the source's throughput with streams ÷ without
    reader: Reader | None = None
    pattern: str = "write"
    request: int = REQUEST

    @property
    def ways(self) -> tuple[str, ...]:
        """Names of the ways; on the vStream-FTL the device learns, else the filesystem does."""
        unlabelled = "contexts" if "vstream" in self.device else "learned"
        return ("ext4", "streams off", unlabelled, "hints")


CHOI = ("--preset", "enterprise-fdp", "--scale", "1/512")
EMMC = ("--preset", "emmc-64g", "--scale", "1/64", "--ftl", "emmc")
YONG = ("--preset", "vstream-256g", "--scale", "1/256")
LIFETIMES, READERS = (1, 10, 33, 55), Reader(6, 7 / 3)
PARTITIONED = (2,) * 48 + (4,) * 8 + (16,) * 8
WORKS = (
    Work(
        "Choi, 4 lifetimes and 6 readers",
        CHOI,
        0.88,
        LIFETIMES,
        HINTED,
        LEARNED,
        saving=2.0,
        reader=READERS,
    ),
    Work("Choi, fuller", CHOI, 0.93, LIFETIMES, HINTED, saving=2.0, reader=READERS),
    Work("Vishwakarma, 3 lifetimes", EMMC, 0.88, (2, 101, 709), HINTED, LEARNED, saving=2.0),
    Work(
        "Yong, 64 partitions, vStream-FTL",
        (*YONG, "--ftl", "vstream"),
        0.9,
        PARTITIONED,
        PARTITIONS,
        faster=3.7,
    ),
    Work(
        "Yong, 64 partitions, vStream-FTL with normal GC",
        (*YONG, "--ftl", "vstream", "--gc", "shared"),
        0.9,
        PARTITIONED,
        PARTITIONS,
    ),
    Work("Yong, 64 partitions, page map", YONG, 0.9, PARTITIONED, PARTITIONS),
)
WAYS = {
    "ext4": Way(filesystem="ext4"),
    "streams off": Way(),
    "learned": Way(placement="learned", daemon=True),
    "contexts": Way(placement="passthrough"),
    "hints": Way(placement="hints"),
}
# The same programs and the same 8 streams: either the host or the SSD maps vStreams to them.
VSTREAM = ("--ftl", "vstream")
MIX = {
    "page map, streams off": (Way(), ()),
    "page map, hints": (Way(placement="hints", preload=True), ()),
    "page map, hints and learned": (Way(placement="auto", daemon=True, preload=True), ()),
    "vStream-FTL, normal GC": (
        Way(placement="passthrough", preload=True),
        (*VSTREAM, "--gc", "shared"),
    ),
    "vStream-FTL": (Way(placement="passthrough", preload=True), VSTREAM),
}
# Lee's FTLs have one stream: a file is written in order and then at random, 4 KiB a request.
LEE = {"hybrid": ("--ftl", "hybrid"), "log-block": ("--ftl", "log-block")}
LEE_SIZE = ("--size", "128M", "--op", "0.07")
LEE_FILL = 0.8


@dataclass(frozen=True)
class Size:
    """How much is written before the counters start, and after: in units of the files."""

    warm_up: float
    counted: float


FULL, SMALL = Size(4, 4), Size(0.5, 0.5)


def measure(quick: bool) -> list[Row]:
    """Return every row."""
    size = SMALL if quick else FULL
    works = WORKS[2:3] if quick else WORKS
    mixed = [] if quick else mix()
    return [*(each for work in works for each in rows(work, size)), *lee(size), *mixed]


def rows(work: Work, size: Size) -> Iterator[Row]:
    """Yield a job's WAF by way, and the source's figure beside ours."""
    targets = {"hints": work.hinted, "learned": work.learned}
    counted = {}
    for name in work.ways:
        counted[name] = run(work, WAYS[name], size)
        unit = f"WAF, {work.fill:.0%} full, spare {counted[name].effective_spare:.3f}"
        yield row(f"{work.name}: {name}", counted[name].waf, unit, targets.get(name))
    off, hints = counted["streams off"], counted["hints"]
    if work.saving is not None:
        yield row(f"{work.name}: off ÷ hints", off.waf / hints.waf, f"WAF; source {work.saving:g}")
    if work.faster is not None:
        unit = f"throughput if saturated; source {work.faster:g}"
        yield row(f"{work.name}: hints ÷ off", hints.mb_per_s / off.mb_per_s, unit)


def mix() -> Iterator[Row]:
    """Yield what the demo's programs write under the page map and under vStream-FTL."""
    for name, (way, device) in MIX.items():
        job = Job("mix", way, QUICK, device=device)
        with fresh_folders(OUTPUT, QUICK, keep=False) as folders:
            outcome = run_programs(job, folders, lambda _: None)
        counters = outcome.counters
        unit = f"NAND bytes an application byte, spare {counters.effective_spare:.3f}"
        yield row(f"The demo's mix, {name}", outcome.nand_per_app_byte, unit)
        copied = counters.gc_bytes / counters.nand_bytes
        yield row(f"The demo's mix, {name}: copies", copied, "of the bytes programmed")


def lee(size: Size) -> Iterator[Row]:
    """Yield erases of Lee's two FTLs under the same requests, on streamfs and ext4."""
    for pattern in ("write", "randwrite"):
        for name, way in (("ext4", WAYS["ext4"]), ("streamfs", WAYS["streams off"])):
            erases = {}
            for ftl, options in LEE.items():
                job = f"Lee, {pattern} of 4 KiB on {ftl}"
                work = Work(
                    job,
                    (*LEE_SIZE, *options),
                    LEE_FILL,
                    (1,),
                    HINTED,
                    pattern=pattern,
                    request=4096,
                )
                counted = run(work, way, size)
                erases[ftl] = counted.erases
                yield row(f"{job}: {name}", counted.waf, "WAF")
            yield row(
                f"Lee, {pattern}: erases, {name}",
                erases["hybrid"] / max(1, erases["log-block"]),
                "hybrid ÷ log-block",
            )


def run(work: Work, way: Way, size: Size) -> Counters:
    """Run a job on a fresh device; everything is undone at the end."""
    with fresh_folders(OUTPUT, QUICK, keep=False) as folders, ExitStack() as up:
        ssd = Ssd(folders.images / "ssd", *work.device)
        control = mounted(up, way, ssd, folders, None)
        files = place(control, work, ssd)
        fill(folders, files)
        counted = write(folders, work, files, size, ssd)
        control.check_alive()
        return counted


@dataclass(frozen=True)
class File:
    """A file of a job: its place, and its size."""

    path: Path
    size: int


def place(control: Control, work: Work, ssd: Ssd) -> list[File]:
    """Choose the files' places and sizes; a way with labels or contexts has a folder for each."""
    wanted = work.fill * ssd.user_bytes() - ssd.counters().live_bytes
    room = int(min(wanted, free_bytes(control.mount) * (1 - GUARD)))
    files = []
    for number, size in enumerate(sizes(work, room)):
        folder = control.mount
        if control.way.placement in {"hints", "passthrough"}:
            folder = control.mount / f"life-{letters(number)}"
            folder.mkdir()
        if control.way.placement == "hints":
            output_of([BIN / "streamctl", "hint", "--name", folder.name, folder])
        files.append(File(folder / f"data-{number}", size))
    return files


def letters(number: int) -> str:
    """Name a number below 676 in letters; contexts fold digits."""
    first, second = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[first] + ascii_lowercase[second]


def sizes(work: Work, room: int) -> list[int]:
    """Return the files' bytes: whole requests, in proportion to the lifetimes."""
    unit = room / sum(work.lifetimes)
    return [max(1, int(unit * each / work.request)) * work.request for each in work.lifetimes]


def fill(folders: Folders, files: Sequence[File]) -> None:
    """Write each file once, in order, one file after the other."""
    one = ("rw=write", f"bs={REQUEST}", "stonewall")
    jobs = [(*one, f"filename={each.path}", f"size={each.size}") for each in files]
    output_of(["fio", job_file(folders, "fill", jobs)])


def write(folders: Folders, work: Work, files: Sequence[File], size: Size, ssd: Ssd) -> Counters:
    """Write all files equally often, and return what the device counted after the warm-up."""
    total = sum(each.size for each in files)
    end = ssd.counters().written_bytes + total * size.warm_up
    share = int(total * (size.warm_up + size.counted) / len(files))
    jobs = [*writers(work, files, share), *readers(work, files)]
    command = ["fio", str(job_file(folders, "write", jobs))]
    fio = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while fio.poll() is None and ssd.counters().written_bytes < end:
            time.sleep(POLL_SECONDS)
        ssd.reset()
        _, said = fio.communicate()
    finally:
        if fio.poll() is None:
            fio.kill()
            fio.wait()
    if fio.returncode != 0:
        message = f"fio: {said.strip()}"
        raise BenchError(message)
    return ssd.counters()


def writers(work: Work, files: Sequence[File], share: int) -> Iterator[tuple[str, ...]]:
    """Yield a job for each file, which writes it over and over; fio's flow keeps them equal."""
    requests = f"io_size={share // work.request * work.request}"
    one = (f"rw={work.pattern}", f"bs={work.request}", requests, "overwrite=1", f"flow={WEIGHT}")
    for each in files:
        yield (*one, f"filename={each.path}", f"size={each.size}")


def readers(work: Work, files: Sequence[File]) -> Iterator[tuple[str, ...]]:
    """Yield the job of the readers, which read the largest file at random, if there are any."""
    if work.reader is None:
        return
    largest = max(files, key=lambda each: each.size)
    weight = round(WEIGHT * len(files) * work.reader.reads_a_write / work.reader.processes)
    yield (
        *("rw=randread", "bs=4096", "ioengine=libaio", "iodepth=64", "time_based=1"),
        *("runtime=100000", f"numjobs={work.reader.processes}", f"flow={weight}"),
        *(f"filename={largest.path}", f"size={largest.size}"),
    )


def job_file(folders: Folders, name: str, jobs: Sequence[tuple[str, ...]]) -> Path:
    """Write fio's file of jobs. All end with the first that ends."""
    lines = ["[global]", "ioengine=psync", "direct=1", "thread=1", "fallocate=none", "flow_id=1"]
    lines += [f"flow_sleep={HELD_BACK_US}"]
    lines += [] if name == "fill" else ["exitall=1"]
    for number, job in enumerate(jobs):
        lines += [f"[{name}-{number}]", *job]
    path = folders.work / f"{name}.fio"
    path.write_text("\n".join(lines) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main("jobs", __doc__.splitlines()[0], measure))
