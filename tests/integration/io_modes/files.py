"""How the cases open and touch files: one mode of I/O is one way to put bytes into a file."""

import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PAGE = 4096
Observed = dict[str, object]
Put = Callable[[int, bytes, int], int]  # (open file, bytes, offset) → how many


def aligned(content: bytes, shift: int = 0) -> memoryview:
    """Return memory with this content that starts ``shift`` bytes behind a page's start."""
    memory = mmap.mmap(-1, len(content) + shift + 1)
    memory[shift : shift + len(content)] = content
    return memoryview(memory)[shift : shift + len(content)]


def outcome(action: Callable[..., object], *arguments: object) -> object:
    """Return what a call returned, or its errno as a word."""
    try:
        return action(*arguments)
    except OSError as error:
        return f"errno {error.errno}"


def direct_read(fd: int, size: int, offset: int, shift: int = 0) -> bytes:
    """Read into aligned memory; the file decides whether that is direct."""
    memory = aligned(bytes(size), shift)
    return bytes(memory[: os.preadv(fd, [memory], offset)])


def direct_write(fd: int, content: bytes, offset: int, shift: int = 0) -> int:
    """Write from aligned memory."""
    return os.pwritev(fd, [aligned(content, shift)], offset)


def mapped_store(fd: int, content: bytes, offset: int) -> int:
    """Store through a shared mapping of the pages."""
    start = offset // PAGE * PAGE
    with mmap.mmap(fd, offset - start + len(content), offset=start) as mapping:
        mapping[offset - start :] = content
    return len(content)


def mapped_load(fd: int, size: int, offset: int) -> bytes:
    """Load through a shared mapping."""
    with mmap.mmap(fd, size, prot=mmap.PROT_READ, offset=offset) as mapping:
        return mapping[:]


class Opened:
    """A file opened for a while."""

    def __init__(self, path: Path, flags: int = 0) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)

    def __enter__(self) -> int:
        """Return the descriptor."""
        return self.fd

    def __exit__(self, *_: object) -> None:
        """Close it."""
        with suppress(OSError):
            os.close(self.fd)


# By name: what to open the file with, and how to write a whole aligned piece of it.
WRITERS: dict[str, tuple[int, Put]] = {
    "buffered": (0, os.pwrite),
    "direct": (os.O_DIRECT, direct_write),
    "mapped": (0, mapped_store),
    "synced": (os.O_SYNC, os.pwrite),
    "data synced": (os.O_DSYNC, os.pwrite),
    "direct, data synced": (os.O_DIRECT | os.O_DSYNC, direct_write),
}
READERS: dict[str, tuple[int, Callable[[int, int, int], bytes]]] = {
    "buffered": (0, os.pread),
    "direct": (os.O_DIRECT, direct_read),
    "mapped": (0, mapped_load),
}
