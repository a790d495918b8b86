"""Metadata operations on mounts: streamfs beside the limit of any FUSE server, ext4 and another.

A single thread makes the same system calls on each mount in turn, in several rounds. Each round
measures a thread that may move between CPUs, then a thread that is bound to one. A row's value is
the median of the rounds' ratios; its spread is the spread of these ratios.
"""

import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.loop import why_not
from bench.mounts import Mounted, compared, meta_class, mount_all
from bench.paths import BIN
from bench.system import output_of
from bench.table import Row, Target, main, ratio, row, unavailable

# docs/EXPERIMENTS.md, "Operations on a mount"
OF_LIMIT = 0.85
OF_DEVICE, OF_DEVICE_FREE, OF_DEVICE_BOUND = 1.0, 1.3, 2.0  # io_uring ÷ /dev/fuse
# The last two are the targets of these operations, OF_DEVICE that of the others.
FASTER = ("create", "stat", "chmod", "rename", "mkdir", "unlink")
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
        found = [{name: once(one, files) for name, one in mounts.items()} for _ in range(rounds)]
    return list(rows(found, told))


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
