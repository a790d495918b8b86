"""File data on mounts: streamfs beside the limit of any FUSE server, ext4 and another.

The same fio jobs on all of them in turn, in the other order every other round; a value is the
median of the rounds' ratios. The cost of checksums is the ratio to a streamfs made without them.
fio has the page cache forget the file before it reads; passthrough_hp's stays in the cache of the
ext4 beneath it. A server that does nothing has no disk: it drops all writes. Where a request waits
for the one before it, a server's own time and the disk's add up.
"""

import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from bench import fio
from bench.loop import why_not
from bench.mounts import Mounted, compared, folder, meta_class, mount_all, streamfs
from bench.system import cpu_us
from bench.table import Row, Target, main, ratio, row, unavailable

DEVICE_BYTES = 2 << 30
FILE_MIB, ROUNDS = 512, 6
FILE_MIB_QUICK, ROUNDS_QUICK = 32, 1
SECONDS_RANDOM, SECONDS_RANDOM_QUICK = 3, 1
# docs/EXPERIMENTS.md, "Speed beside ext4"
OF_LIMIT = 0.85
SEQUENTIAL_OF_EXT4, SEQUENTIAL_OF_LIMIT = 0.95, 0.9
RANDOM_OF_EXT4 = 0.7
OF_DEVICE = 0.97  # io_uring ÷ /dev/fuse
UNCHECKED, SEQUENTIAL_OF_UNCHECKED = "itself without checksums", 0.95


@dataclass(frozen=True)
class Figure:
    """The result of a job on one filesystem, and the CPU time that its server took."""

    speed: float
    server_us: float = 0.0  # a MiB, or a request of a random job; 0: the kernel's


Figures = dict[str, dict[str, Figure]]  # by job, then by filesystem, of one round


@dataclass(frozen=True)
class Job:
    """A job of fio, and how it is counted."""

    name: str
    direction: str
    options: tuple[str, ...]
    unit: str = "MiB a second"
    random: bool = False
    one_at_a_time: bool = False  # a request waits for the one before it


JOBS = (
    Job("128 KiB writes, buffered", "write", ("--rw=write", "--bs=128k", "--end_fsync=1")),
    Job("128 KiB reads, buffered", "read", ("--rw=read", "--bs=128k")),
    Job(
        "128 KiB writes, direct",
        "write",
        ("--rw=write", "--bs=128k", "--direct=1"),
        one_at_a_time=True,
    ),
    Job(
        "128 KiB reads, direct",
        "read",
        ("--rw=read", "--bs=128k", "--direct=1"),
        one_at_a_time=True,
    ),
    Job(
        "4 KiB random reads, direct, 16 at once",
        "read",
        ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--iodepth=16"),
        "a second",
        random=True,
    ),
)


def measure(quick: bool) -> list[Row]:
    """Return one row a job and filesystem to compare with."""
    if reason := why_not(["mkfs.ext4", "fio"]):
        return [unavailable("file data on mounts", reason)]
    with ExitStack() as stack:
        mounts = mount_all(stack, DEVICE_BYTES)
        mounts[UNCHECKED] = streamfs(stack, folder(stack), DEVICE_BYTES, checksums=False)
        told = f"META class {meta_class(mounts['streamfs'])}"
        rounds = []
        for _ in range(ROUNDS_QUICK if quick else ROUNDS):
            rounds.append(one_round(mounts, quick))
            mounts = dict(reversed(mounts.items()))
    return [line for job in JOBS for line in rows(job, [each[job.name] for each in rounds], told)]


def one_round(mounts: dict[str, Mounted], quick: bool) -> Figures:
    """Run each job on each filesystem, one after the other."""
    return {
        job.name: {name: figure(job, mounted, quick) for name, mounted in mounts.items()}
        for job in JOBS
    }


def figure(job: Job, mounted: Mounted, quick: bool) -> Figure:
    """Run a job on one filesystem."""
    size = f"--size={FILE_MIB_QUICK if quick else FILE_MIB}m"
    options = [size, "--filename=file", *job.options]
    if job.random:
        seconds = SECONDS_RANDOM_QUICK if quick else SECONDS_RANDOM
        options += ["--time_based", f"--runtime={seconds}"]
    before = cpu_us(mounted.server)
    account = fio.run(mounted.point, options)
    took = cpu_us(mounted.server) - before
    if job.random:
        done, speed = account[job.direction]["total_ios"], fio.operations_a_second
    else:
        done, speed = account[job.direction]["io_bytes"] / fio.MIB, fio.mib_a_second
    return Figure(speed(account, job.direction), took / done)


def rows(job: Job, rounds: list[dict[str, Figure]], told: str) -> Iterator[Row]:
    """Yield a job's speed and its ratios, and what its server took of a CPU; ``told`` stands beside
    the speed.
    """
    speeds = {name: [each[name].speed for each in rounds] for name in rounds[0]}
    for ours, others in compared(list(speeds)):
        yield row(f"{job.name}: {ours}", statistics.median(speeds[ours]), f"{job.unit}, {told}")
        for other in others:
            what = f"{job.name}: {ours} ÷ {other}"
            yield ratio(what, speeds[ours], speeds[other], wanted(job, other))
    for name in speeds:
        if took := statistics.median(each[name].server_us for each in rounds):
            what = "a read" if job.random else "a MiB"
            yield row(f"{job.name}: server's CPU time, {name}", took, f"µs {what}")
    if not job.random:
        asked = f"{job.name}: ÷ min({SEQUENTIAL_OF_EXT4} ext4, {SEQUENTIAL_OF_LIMIT} limit_fs)"
        yield ratio(asked, speeds["streamfs"], [least(each) for each in rounds], Target(1, True))
    if job.one_at_a_time:
        bound = [in_turn(each) for each in rounds]
        yield ratio(f"{job.name}: limit_fs and ext4 in turn ÷ ext4", bound, speeds["ext4"])
        yield ratio(f"{job.name}: streamfs ÷ these", speeds["streamfs"], bound)


def wanted(job: Job, other: str) -> Target | None:
    """Return what is asked of a job's ratio to one other filesystem, if anything is."""
    if other.startswith("limit_fs"):
        return Target(OF_LIMIT, at_least=True)
    if other == "streamfs":
        return Target(OF_DEVICE, at_least=True)
    if job.random:
        return Target(RANDOM_OF_EXT4, at_least=True) if other == "ext4" else None
    return Target(SEQUENTIAL_OF_UNCHECKED, at_least=True) if other == UNCHECKED else None


def in_turn(each: dict[str, Figure]) -> float:
    """Return the speed of one that takes limit_fs's time for a request and then ext4's."""
    return 1 / (1 / each["ext4"].speed + 1 / each["limit_fs"].speed)


def least(each: dict[str, Figure]) -> float:
    """Return what sequential access has to reach in a round."""
    ext4, limit = each["ext4"].speed, each["limit_fs"].speed
    return min(SEQUENTIAL_OF_EXT4 * ext4, SEQUENTIAL_OF_LIMIT * limit)


if __name__ == "__main__":
    sys.exit(main("io", __doc__.splitlines()[0], measure))
