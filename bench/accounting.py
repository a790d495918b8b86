"""How many bytes did programs ask to write?

The kernel counts the bytes of every write system call (``wchar`` of /proc/PID/io) and adds a dead
child's count to the parent that waited for it. Summed over a live process tree that is every byte
its programs handed to write(2) and its kin, the same on every filesystem: before any page cache,
and whatever the filesystem makes of it. Stores into mapped files (SQLite's -shm) are left out.
Writes to pipes are counted, but small. Sockets are not counted.
"""

import ctypes
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.system import output_of

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Make this process the parent of its descendants' orphans, so that none escapes the count."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def descendants(root: int) -> Iterator[int]:
    """Yield ``root`` and every live process below it."""
    yield root
    try:
        tasks = list(Path(f"/proc/{root}/task").iterdir())
        children = " ".join((task / "children").read_text() for task in tasks)
    except OSError:  # ended meanwhile: its parent will have its count
        return
    for child in children.split():
        yield from descendants(int(child))


def bytes_asked(root: int | None = None) -> int:
    """Return the bytes that a tree of processes has handed to write calls so far."""
    return sum(_asked(pid) for pid in descendants(root or os.getpid()))


def asked_by(arguments: Sequence[str | Path]) -> int:
    """Run a command to its end; return the bytes that it and its children asked to write."""
    before = _asked(os.getpid())
    output_of(arguments)
    return _asked(os.getpid()) - before


def _asked(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("wchar:"))
