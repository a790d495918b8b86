"""Metadata operations on mounts: streamfs beside the limit of any FUSE server, ext4 and another.

The same system calls by one thread, on all of them in turn, several rounds. A row's value is the
median of the rounds' ratios; the spread is that of the rounds.
"""

import json
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.loop import why_not
from bench.mounts import Mounted, compared, meta_class, mount_all
from bench.paths import BIN
from bench.system import output_of
from bench.table import Row, Target, main, ratio, row, unavailable

OF_LIMIT = 0.85  # docs/EXPERIMENTS.md, "Operations on a mount"
DEVICE_BYTES = 2 << 30
FILES, ROUNDS = 5_000, 25  # passthrough_hp keeps a descriptor for each file and folder
FILES_QUICK, ROUNDS_QUICK = 2_000, 2

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
    """Measure one filesystem once."""
    command: list[str | Path] = [BIN / "mount_meter", mounted.point, "--files", str(files)]
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
                target = Target(OF_LIMIT, at_least=True) if other.startswith("limit_fs") else None
                yield ratio(f"{operation}: {ours} ÷ {other}", speeds[ours], speeds[other], target)
        own, bare = (
            statistics.median(values(name, "server_us")) for name in ("streamfs", "limit_fs")
        )
        yield row(f"{operation}: server's CPU time", own, f"µs, limit_fs {bare:.1f}")


if __name__ == "__main__":
    sys.exit(main("meta", __doc__.splitlines()[0], measure))
