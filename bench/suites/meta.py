"""Metadata operations on mounts: streamfs beside the limit of any FUSE server, ext4 and another.

A single thread makes the same system calls on each mount in turn, in several rounds. Each round
measures a thread that may move between CPUs, then a thread that is bound to one. A row's value is
the median of the rounds' ratios; its spread is the spread of these ratios. A copy of small files
(`cp -a`) is held against ext4's.
"""

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.loop import why_not
from bench.mounts import Mounted, compared, folder, meta_class, mount_all, settle
from bench.paths import BIN
from bench.system import output_of
from bench.table import Row, Target, main, ratio, row, unavailable

# docs/EXPERIMENTS.md, "Operations on a mount"
OF_LIMIT = 0.85
OF_DEVICE, OF_DEVICE_FREE, OF_DEVICE_BOUND = 1.0, 1.3, 2.0  # io_uring ÷ /dev/fuse
# The last two are the targets of these operations, OF_DEVICE that of the others.
FASTER = ("create", "stat", "chmod", "rename", "mkdir", "unlink")
COPY_OF_EXT4 = 1.8  # of the seconds; docs/EXPERIMENTS.md, "Mounts and transports"
FOLDERS, FOLDERS_QUICK, FILES_EACH, FILE_BYTES = 160, 8, 50, 3_000
DEVICE_BYTES = 2 << 30
FILES, ROUNDS = 5_000, 9  # passthrough_hp keeps a descriptor for each file and folder
FILES_QUICK, ROUNDS_QUICK = 2_000, 2

BOUND = ", thread bound to a CPU"

Found = dict[str, dict[str, float]]  # by operation: per_second, server_us


def measure(quick: bool) -> list[Row]:
    """Return one row an operation and filesystem to compare with."""
    if reason := why_not(["mkfs.ext4"]):
        return [unavailable("metadata on mounts", reason)]
    files, rounds = (FILES_QUICK, ROUNDS_QUICK) if quick else (FILES, ROUNDS)
    with ExitStack() as stack:
        mounts = mount_all(stack, DEVICE_BYTES)
        told = f"META class {meta_class(mounts['streamfs'])}"
        tree = small_files(folder(stack), FOLDERS_QUICK if quick else FOLDERS)
        found, seconds = [], []
        for _ in range(rounds):
            found.append({name: once(one, files) for name, one in mounts.items()})
            seconds.append({name: copied(tree, mounts[name]) for name in mounts if copies(name)})
    return [*rows(found, told), *copy_rows(seconds)]


def copies(name: str) -> bool:
    """Return whether the copy of small files is measured on a mount of this name."""
    return name == "ext4" or name.startswith("streamfs")


def small_files(work: Path, folders: int) -> Path:
    """Make a tree of small files."""
    tree = work / "small files"
    for number in range(folders):
        place = tree / f"{number}"
        place.mkdir(parents=True)
        for file in range(FILES_EACH):
            (place / f"{file}").write_bytes(os.urandom(FILE_BYTES))
    return tree


def copied(tree: Path, mounted: Mounted) -> float:
    """Return how many seconds `cp -a` of a tree takes, and remove the copy."""
    copy = mounted.point / "copy"
    begin = time.monotonic()
    output_of(["cp", "-a", tree, copy])
    seconds = time.monotonic() - begin
    shutil.rmtree(copy)
    settle(mounted)
    return seconds


def copy_rows(rounds: list[dict[str, float]]) -> Iterator[Row]:
    """Yield the seconds of a copy on each mount, and the ratio to ext4."""
    for name in rounds[0]:
        what, ours = f"cp -a of small files: {name}", [each[name] for each in rounds]
        yield row(what, statistics.median(ours), "seconds")
        if name != "ext4":
            others = [each["ext4"] for each in rounds]
            yield ratio(f"{what} ÷ ext4", ours, others, Target(COPY_OF_EXT4))


def once(mounted: Mounted, files: int) -> Found:
    """Measure one filesystem once, with a free thread and with a bound one."""
    cpu = str(min(os.sched_getaffinity(0)))
    free = metered(mounted, files)
    bound = metered(mounted, files, ["taskset", "-c", cpu])
    return free | {operation + BOUND: figures for operation, figures in bound.items()}


def metered(mounted: Mounted, files: int, starter: Sequence[str] = ()) -> Found:
    """Run mount_meter on a mount, after the words ``starter`` (for example taskset's)."""
    meter = BIN / "mount_meter"
    command: list[str | Path] = [*starter, meter, mounted.point, "--files", str(files)]
    if mounted.server is not None:
        command += ["--server", str(mounted.server)]
    answer: Found = json.loads(output_of(command))
    return answer


def rows(rounds: list[dict[str, Found]], told: str) -> Iterator[Row]:
    """Yield the ratios of every operation; ``told`` stands in each row."""
    for operation in rounds[0]["streamfs"]:

        def values(name: str, key: str, operation: str = operation) -> list[float]:
            return [each[name][operation][key] for each in rounds]

        speeds = {name: values(name, "per_second") for name in rounds[0]}
        for ours, others in compared(list(speeds)):
            yield row(f"{operation}: {ours}", statistics.median(speeds[ours]), f"a second, {told}")
            for other in others:
                what = f"{operation}: {ours} ÷ {other}"
                yield ratio(what, speeds[ours], speeds[other], wanted(operation, other))
            bare = limit_of(ours)
            if ours in rounds[0] and bare in rounds[0]:
                own, least = (statistics.median(values(name, "server_us")) for name in (ours, bare))
                yield row(f"{operation}: CPU time of {ours}", own, f"µs, {bare} {least:.1f}")


def limit_of(ours: str) -> str:
    """Return the name of the limit_fs mount that uses the transport of ``ours``."""
    return ours.replace("streamfs", "limit_fs")


def wanted(operation: str, other: str) -> Target | None:
    """Return what is asked of the ratio to another filesystem, if anything is."""
    if other.startswith("limit_fs"):
        return Target(OF_LIMIT, at_least=True)
    if other != "streamfs":
        return None
    if operation.removesuffix(BOUND) not in FASTER:
        return Target(OF_DEVICE, at_least=True)
    return Target(OF_DEVICE_BOUND if BOUND in operation else OF_DEVICE_FREE, at_least=True)


if __name__ == "__main__":
    sys.exit(main("meta", __doc__.splitlines()[0], measure))
