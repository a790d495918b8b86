"""Metadata operations on mounts: streamfs beside the limit of any FUSE server, ext4 and another.

The same system calls by one thread, on all of them in turn, several rounds. A row's value is the
median of the rounds' ratios; the spread is that of the rounds.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.loop import why_not
from bench.mounts import MOUNTERS, PASSTHROUGH, Mounted, meta_class
from bench.paths import BIN
from bench.system import output_of
from bench.table import Row, Target, main, row, unavailable

OF_LIMIT = 0.85  # docs/DESIGN.md "Numbers"
OTHERS = ("limit_fs", "ext4", "passthrough_hp")
DEVICE_BYTES = 2 << 30
FILES, ROUNDS = 5_000, 9  # passthrough_hp keeps a descriptor for each file and folder
FILES_QUICK, ROUNDS_QUICK = 2_000, 2

Found = dict[str, dict[str, float]]  # by operation: per_second, server_us


def measure(quick: bool) -> list[Row]:
    """Return one row an operation and filesystem to compare with."""
    if reason := why_not(["mkfs.ext4"]):
        return [unavailable("metadata on mounts", reason)]
    files, rounds = (FILES_QUICK, ROUNDS_QUICK) if quick else (FILES, ROUNDS)
    names = [name for name in MOUNTERS if name != "passthrough_hp" or PASSTHROUGH.exists()]
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamfs-bench-")))
        mounts = {name: MOUNTERS[name](stack, work, DEVICE_BYTES) for name in names}
        told = f"META class {meta_class(mounts['streamfs'])}"
        found = [{name: once(mounts[name], files) for name in names} for _ in range(rounds)]
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

        speeds = values("streamfs", "per_second")
        yield row(f"{operation}: streamfs", statistics.median(speeds), f"a second, {told}")
        for other in OTHERS:
            if other not in rounds[0]:
                continue
            ratios = [a / b for a, b in zip(speeds, values(other, "per_second"), strict=True)]
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            target = Target(OF_LIMIT, at_least=True) if other == "limit_fs" else None
            yield row(f"{operation}: ÷ {other}", statistics.median(ratios), spread, target)
        own, bare = (
            statistics.median(values(name, "server_us")) for name in ("streamfs", "limit_fs")
        )
        yield row(f"{operation}: server's CPU time", own, f"µs, limit_fs {bare:.1f}")


if __name__ == "__main__":
    sys.exit(main("meta", __doc__.splitlines()[0], measure))
