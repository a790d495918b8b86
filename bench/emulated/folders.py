"""A run's own folders, made for it and gone after it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.emulated.ssd import user_bytes
from bench.programs.plan import Plan


@dataclass(frozen=True)
class Folders:
    """A run's own folders: the image may lie in memory, the rest does not."""

    images: Path  # the emulated SSD's
    work: Path  # META, trace, logs
    shared: Path  # mount points and all else that the workload's user must reach


@contextmanager
def fresh_folders(output: Path, plan: Plan, *, keep: bool) -> Iterator[Folders]:
    """Give a run its folders: images in memory where there is room for two of them."""
    output.mkdir(parents=True, exist_ok=True)
    memory = Path("/dev/shm")
    needed = 2 * user_bytes(plan)
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > needed and _memory_free() > needed
    work = Path(tempfile.mkdtemp(prefix="run-", dir=output))
    images = Path(tempfile.mkdtemp(prefix="streamfs-bench-", dir=memory if roomy else work))
    shared = Path(tempfile.mkdtemp(prefix="streamfs-bench-"))
    shared.chmod(0o755)
    try:
        yield Folders(images=images, work=work, shared=shared)
    finally:
        _remove_unmounted(shared)
        if not keep:
            shutil.rmtree(images, ignore_errors=True)
            shutil.rmtree(work, ignore_errors=True)


def _memory_free() -> int:
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return next(int(words[1]) << 10 for words in fields if words[0] == "MemAvailable:")


def _remove_unmounted(folder: Path) -> None:
    """Delete a folder, never through something that is still mounted in it."""
    if not any(os.path.ismount(path) for path in folder.iterdir()):
        shutil.rmtree(folder, ignore_errors=True)
