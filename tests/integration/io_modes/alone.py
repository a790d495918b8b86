"""The results of each mode of I/O in one process."""

import ctypes
import fcntl
import mmap
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.integration.io_modes.files import (
    PAGE,
    READERS,
    WRITERS,
    Observed,
    Opened,
    aligned,
    direct_read,
    direct_write,
    mapped_load,
    mapped_store,
    outcome,
)

LIBC = ctypes.CDLL(None, use_errno=True)
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
RANGE_WAIT_BEFORE, RANGE_WRITE, RANGE_WAIT_AFTER = 1, 2, 4
CLOCK_TICK = 0.02  # seconds: longer than a tick of the kernel's coarse clock


def checked(result: int) -> int:
    """Return a libc call's result, or raise its errno."""
    if result < 0:
        raise OSError(ctypes.get_errno(), "libc")
    return result


def sync_file_range(fd: int, offset: int, length: int, flags: int) -> int:
    """Start or wait for write-back."""
    wide = ctypes.c_int64
    return checked(LIBC.sync_file_range(fd, wide(offset), wide(length), flags))


def fallocate(fd: int, mode: int, offset: int, length: int) -> int:
    """Set aside, or punch."""
    wide = ctypes.c_int64
    return checked(LIBC.fallocate(fd, mode, wide(offset), wide(length)))


def aligned_direct_io(folder: Path) -> Observed:
    """Whole sectors and blocks, at, across and past the end of the file."""
    with Opened(folder / "aligned", os.O_DIRECT) as fd:
        seen: Observed = {
            f"write {size} at {offset}": outcome(direct_write, fd, b"a" * size, offset)
            for size, offset in [(4096, 0), (512, 8192), (1 << 20, 4096), (1 << 21, 1 << 20)]
        }
        os.ftruncate(fd, 10_000)
        seen["size"] = os.fstat(fd).st_size
        for offset in (0, 4096, 8192, 12288):
            read = direct_read(fd, 8192, offset)
            seen[f"read at {offset}"] = [len(read), read.count(b"a")]
    return seen


def unaligned_direct_io(folder: Path) -> Observed:
    """Offset, length and memory that are no multiple of a sector, each by itself."""
    (folder / "unaligned").write_bytes(b"x" * 65536)
    with Opened(folder / "unaligned", os.O_DIRECT) as fd:
        seen: Observed = {}
        for offset, size, shift in [(100, 512, 0), (4096, 100, 0), (8192, 512, 7)]:
            name = f"{size} at {offset}, memory at {shift}"
            seen[f"write {name}"] = outcome(direct_write, fd, b"u" * size, offset, shift)
            read = outcome(direct_read, fd, size, offset, shift)
            seen[f"read {name}"] = len(read) if isinstance(read, bytes) else read
    return seen


def each_reader_sees_each_writer(folder: Path) -> Observed:
    """No mode hides from another what it has written, synced or not, cached before or not."""
    seen: Observed = {}
    for writer, (write_flags, write) in WRITERS.items():
        for reader, (read_flags, read) in READERS.items():
            path = folder / f"{writer}-{reader}"
            path.write_bytes(b"o" * 4 * PAGE)
            with Opened(path, write_flags) as out, Opened(path, read_flags) as source:
                before = read(source, 4 * PAGE, 0)
                written = [write(out, bytes([n]) * PAGE, n * PAGE) for n in (1, 3)]
                after = read(source, 4 * PAGE, 0)
            pages = [after[n * PAGE] for n in range(4)]
            seen[f"{writer}, {reader}"] = [before.count(b"o"), written, pages, len(set(after))]
    return seen


def synced_writes_and_calls_to_sync(folder: Path) -> Observed:
    """Values returned by fsync's relatives."""
    path = folder / "synced"
    with Opened(path) as fd:
        os.write(fd, b"s" * 100_000)
        everything = RANGE_WAIT_BEFORE | RANGE_WRITE | RANGE_WAIT_AFTER
        seen: Observed = {
            "fdatasync": outcome(os.fdatasync, fd),
            "fsync": outcome(os.fsync, fd),
            "range": outcome(sync_file_range, fd, 0, 50_000, everything),
            "range to the end": outcome(sync_file_range, fd, 0, 0, RANGE_WRITE),
            "bad flags": outcome(sync_file_range, fd, 0, 10, 64),
            "bad offset": outcome(sync_file_range, fd, -1, 10, RANGE_WRITE),
            "RWF_DSYNC": outcome(os.pwritev, fd, [b"d" * 5000], 3, os.RWF_DSYNC),
            "RWF_SYNC": outcome(os.pwritev, fd, [b"e" * 5000], 9000, os.RWF_SYNC),
            "size": os.fstat(fd).st_size,
        }
    read_only = os.open(path, os.O_RDONLY)
    seen["fsync for reading"] = outcome(os.fsync, read_only)
    seen["write for reading"] = outcome(os.pwrite, read_only, b"x", 0)
    os.close(read_only)
    return seen


def appends(folder: Path) -> Observed:
    """Where an append goes, whatever the offset, and past what others wrote."""
    seen: Observed = {}
    for name, flags in {"buffered": 0, "direct": os.O_DIRECT, "synced": os.O_SYNC}.items():
        path = folder / f"append-{name}"
        path.write_bytes(b"0" * PAGE)
        with Opened(path, os.O_APPEND | flags) as fd, Opened(path) as other:
            at = [os.writev(fd, [aligned(b"1" * PAGE)]), os.lseek(fd, 0, os.SEEK_CUR)]
            os.pwrite(other, b"2" * PAGE, 2 * PAGE)
            ignored = os.pwritev(fd, [aligned(b"3" * PAGE)], 0)
            os.ftruncate(other, 2 * PAGE)
            os.writev(fd, [aligned(b"4" * PAGE)])
            seen[name] = [at, ignored, os.fstat(fd).st_size]
            seen[f"{name}, content"] = [chr(os.pread(other, 1, n * PAGE)[0]) for n in range(3)]
            os.pwritev(other, [b"5"], 0, os.RWF_APPEND)
            seen[f"{name}, RWF_APPEND"] = [os.fstat(fd).st_size, os.pread(other, 1, 3 * PAGE)]
    return seen


def killed_by(action: Callable[[], object]) -> int:
    """Run it in a child; return the signal that ended it, 0 for none."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        action()
        os._exit(0)
    return os.waitpid(child, 0)[1] & 0x7F


def mappings(folder: Path) -> Observed:
    """Rights, ends of files, holes and privacy."""
    path = folder / "mapped"
    path.write_bytes(b"m" * (2 * PAGE + 100))
    seen: Observed = {}
    with Opened(path) as fd:
        private = mmap.mmap(fd, 2 * PAGE, flags=mmap.MAP_PRIVATE)
        private[:7] = b"private"
        shared = mmap.mmap(fd, 3 * PAGE - (PAGE - 100))
        shared[PAGE : PAGE + 6] = b"shared"
        seen["private"] = [private[:7], os.pread(fd, 7, 0), private[PAGE : PAGE + 6]]
        shared.flush()
        tail = LIBC.mmap
        tail.restype = ctypes.c_void_p
        place = tail(None, 4 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        seen["past the end, in its page"] = killed_by(lambda: ctypes.memset(place + 9000, 1, 8))
        seen["past the end, a page on"] = killed_by(lambda: ctypes.memset(place + 3 * PAGE, 1, 8))
        seen["size"] = os.fstat(fd).st_size
        os.ftruncate(fd, 3 * PAGE)
        seen["grown over"] = os.pread(fd, PAGE, 2 * PAGE).count(0)
        os.ftruncate(fd, 5 * PAGE)
        os.ftruncate(fd, PAGE)
        seen["cut below"] = killed_by(lambda: ctypes.string_at(place + 2 * PAGE, 1))
        LIBC.munmap(ctypes.c_void_p(place), 4 * PAGE)
        os.ftruncate(fd, 64 * PAGE)
        seen["stored in a hole"] = mapped_store(fd, b"h" * 10, 32 * PAGE)
        os.fsync(fd)
        seen["hole"] = [os.pread(fd, 10, 32 * PAGE), os.pread(fd, 10, 31 * PAGE)]
        shared.close()
        private.close()
    for name, flags in {"read-only": os.O_RDONLY, "write-only": os.O_WRONLY}.items():
        fd = os.open(path, flags)
        seen[f"shared, {name}"] = outcome(lambda fd=fd: mmap.mmap(fd, PAGE).close())
        os.close(fd)
    return seen


def cut_and_punched(folder: Path) -> Observed:
    """Direct and mapped reads after the file changed its shape."""
    seen: Observed = {}
    for name, flags in {"buffered": 0, "direct": os.O_DIRECT}.items():
        with Opened(folder / f"cut-{name}", flags) as fd:
            direct_write(fd, b"c" * 16 * PAGE, 0)
            with mmap.mmap(fd, 16 * PAGE) as mapping:
                mapping[0], mapping[9 * PAGE] = 1, 2
                hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
                seen[f"{name} punch"] = outcome(fallocate, fd, hole, PAGE // 2, 10 * PAGE)
                seen[f"{name} mapped"] = [mapping[0], mapping[9 * PAGE], mapping[10 * PAGE]]
            seen[f"{name} read"] = direct_read(fd, 16 * PAGE, 0).count(0)
            seen[f"{name} allocate"] = outcome(fallocate, fd, 0, 16 * PAGE, PAGE)
            os.ftruncate(fd, 3 * PAGE + 512)
            os.ftruncate(fd, 8 * PAGE)
            seen[f"{name} cut"] = [direct_read(fd, 8 * PAGE, 0).count(n) for n in b"c\0"]
    return seen


def moved(path: Path, action: Callable[[], object]) -> list[bool]:
    """Whether it moves mtime, ctime and size, and whether the times stay when all is synced."""
    before = path.stat()
    time.sleep(CLOCK_TICK)
    action()
    after = path.stat()
    with Opened(path) as fd:
        os.fsync(fd)
    later = path.stat()
    return [
        after.st_mtime_ns > before.st_mtime_ns,
        after.st_ctime_ns > before.st_ctime_ns,
        after.st_size != before.st_size,
        (after.st_mtime_ns, after.st_ctime_ns) == (later.st_mtime_ns, later.st_ctime_ns),
    ]


def times(folder: Path) -> Observed:
    """Which of them each change moves."""
    seen: Observed = {}
    for name, (flags, write) in WRITERS.items():
        path = folder / f"times-{name}"
        path.write_bytes(b"t" * 2 * PAGE)
        with Opened(path, flags) as fd:
            changes: dict[str, Callable[[], object]] = {
                "write": partial(write, fd, b"u" * PAGE, PAGE),
                "nothing": partial(os.write, fd, b""),
                "cut": partial(os.ftruncate, fd, 100),
                "longer": partial(os.ftruncate, fd, 5 * PAGE),
                "write after that": partial(write, fd, b"u" * PAGE, 4 * PAGE),
                "read": partial(direct_read, fd, PAGE, 0),
            }
            for change, action in changes.items():
                seen[f"{name}, {change}"] = moved(path, action)
            if name != "mapped":
                seen[f"{name}, append"] = moved(path, partial(write, fd, b"v" * PAGE, 5 * PAGE))
    return seen


def a_limit_of_size(folder: Path) -> Observed:
    """RLIMIT_FSIZE cuts a write short, then refuses it."""
    seen: Observed = {}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 * PAGE, hard))
    try:
        for name, flags in {"buffered": 0, "direct": os.O_DIRECT}.items():
            with Opened(folder / f"limit-{name}", flags) as fd:
                tries = [(2 * PAGE, 0), (2 * PAGE, 2 * PAGE), (PAGE, 3 * PAGE)]
                seen[name] = [outcome(direct_write, fd, b"l" * n, at) for n, at in tries]
                seen[f"{name}, longer"] = outcome(os.ftruncate, fd, 4 * PAGE)
                seen[f"{name}, size"] = os.fstat(fd).st_size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    return seen


def ways_through_the_kernel(folder: Path) -> Observed:
    """sendfile, copy_file_range, running a program, and O_DIRECT switched while open."""
    source = folder / "source"
    source.write_bytes(bytes(range(256)) * 1000)
    seen: Observed = {}
    with Opened(source) as fd, Opened(folder / "copy") as copy, Opened(folder / "sent") as sent:
        seen["copied"] = os.copy_file_range(fd, copy, 256_000, 0, 0)
        seen["sent"] = os.sendfile(sent, fd, 0, 256_000)
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        seen["O_DIRECT on"] = outcome(fcntl.fcntl, fd, fcntl.F_SETFL, flags | os.O_DIRECT)
        seen["then read"] = direct_read(fd, PAGE, PAGE).count(7)
        seen["O_DIRECT off"] = outcome(fcntl.fcntl, fd, fcntl.F_SETFL, flags)
        seen["then read too"] = mapped_load(fd, PAGE, PAGE).count(7)
    shutil.copy("/bin/true", folder / "program")
    seen["run"] = subprocess.run([folder / "program"], check=False).returncode
    return seen


CASES: list[Callable[[Path], Observed]] = [
    aligned_direct_io,
    unaligned_direct_io,
    each_reader_sees_each_writer,
    synced_writes_and_calls_to_sync,
    appends,
    mappings,
    cut_and_punched,
    times,
    a_limit_of_size,
    ways_through_the_kernel,
]
