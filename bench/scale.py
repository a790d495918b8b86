"""Many inodes: mounts after a cut, a check of everything, and whether what mkfs says fits."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.paths import BIN
from bench.table import Row, Target, row, unavailable

MEMORY = Path("/dev/shm")  # META shall cost no time of a device
INODES, INODES_QUICK = 10_000_000, 200_000
FIT, FIT_QUICK = 1_000_000, 50_000
# docs/EXPERIMENTS.md, "The engine"
MOUNT_MS = 10
CHECK_S = 10
META_SHARE = 0.45  # % of DATA at 256 KiB a file, in directories of 8
BYTES_AN_INODE = 900
DATA_BYTES = (100 << 30, 1 << 40, 10 << 40)


def scale(quick: bool) -> list[Row]:
    """Return every row; META is a file in memory, and there is no data device."""
    return [*many(INODES_QUICK if quick else INODES), *fit(FIT_QUICK if quick else FIT), *planned()]


def many(inodes: int) -> list[Row]:
    """Return what mounting and checking so many inodes costs beside none."""
    if shutil.disk_usage(MEMORY).free < inodes * BYTES_AN_INODE:
        return [unavailable(f"{inodes:,} inodes", f"no room for META in {MEMORY}")]
    with place() as meta:
        found = meta_scale("--meta", str(meta), "--inodes", str(inodes))
    name = f"{found['inodes']:,.0f} inodes: "
    beyond = found["mount_full_ms"] - found["mount_fresh_ms"]
    return [
        row("empty, never used: mount", found["mount_fresh_ms"], "ms"),
        row("empty, cut with a full ring: mount", found["mount_empty_ms"], "ms"),
        row(f"{name}cut with a full ring: mount", found["mount_full_ms"], "ms"),
        row(f"{name}beyond the empty one that was never used", beyond, "ms", Target(MOUNT_MS)),
        row(f"{name}check", found["check_s"], "s", Target(CHECK_S)),
        row(f"{name}check: CPU time of all threads", found["check_cpu_s"], "s"),
        row(f"{name}problems found", found["problems"], "", Target(0)),
        row(f"{name}META bytes each", found["meta_bytes"] / found["inodes"], "bytes"),
    ]


def fit(files: int) -> list[Row]:
    """Return whether a META planned for so many small files holds as many as mkfs says."""
    with place() as meta:
        found = meta_scale("--meta", str(meta), "--fit", str(files))
    name = f"META for {files:,} files of 4 KiB: "
    return [
        row(f"{name}fit, says mkfs", found["said"], "files", Target(files, at_least=True)),
        row(
            f"{name}made until it is full",
            found["made"],
            "files",
            Target(max(files, found["said"]), at_least=True),
        ),
    ]


def planned() -> Iterator[Row]:
    """Yield META's largest share of DATA at 256 KiB a file, as mkfs plans it."""
    for data in DATA_BYTES:
        found = meta_scale("--plan", str(data))
        share = 100 * found["meta_bytes"] / data
        yield row(f"META ÷ DATA of {data >> 30:,} GiB", share, "%", Target(META_SHARE))


@contextmanager
def place() -> Iterator[Path]:
    """Give a name for META that is gone afterwards."""
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="streamfs-bench-") as folder:
        yield Path(folder) / "meta"


def meta_scale(*options: str) -> dict[str, Any]:
    """Run the program; return what it says."""
    command = [str(BIN / "meta_scale"), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
