"""Changes files, each in the way that its name says, up to the first dot.

usage: python3 write_ways.py FILE...
Runs by itself, as another user than the tests: it imports nothing of them.
"""

import ctypes
import mmap
import os
import sys
from collections.abc import Callable

PAGE = 4096
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
_libc = ctypes.CDLL(None, use_errno=True)


def _fallocate(fd: int, mode: int, offset: int) -> None:
    if _libc.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(PAGE)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _page() -> memoryview:
    return memoryview(mmap.mmap(-1, PAGE))


# The flags to open with, and the change; `end` is the file's size, its last page is padding.
WAYS: dict[str, tuple[int, Callable[[int, int], object]]] = {
    "append": (os.O_APPEND, lambda fd, end: os.write(fd, b"x")),  # noqa: ARG005
    "overwrite": (0, lambda fd, end: os.pwrite(fd, b"x", end - 1)),
    "direct": (os.O_DIRECT, lambda fd, end: os.pwritev(fd, [_page()], end - PAGE)),
    "sync": (os.O_SYNC, lambda fd, end: os.pwrite(fd, b"x", end - 1)),
    "allocate": (0, lambda fd, end: _fallocate(fd, 0, end)),
    "keep_size": (0, lambda fd, end: _fallocate(fd, KEEP_SIZE, end)),
    "punch": (0, lambda fd, end: _fallocate(fd, PUNCH_HOLE | KEEP_SIZE, end - PAGE)),
    "zero": (0, lambda fd, end: _fallocate(fd, ZERO_RANGE, end - PAGE)),
    "truncate": (0, lambda fd, end: os.ftruncate(fd, end - 1)),
}


def change(name: str) -> None:
    """Change one file."""
    flags, way = WAYS[name.partition(".")[0]]
    fd = os.open(name, os.O_RDWR | flags)
    try:
        way(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        change(each)
