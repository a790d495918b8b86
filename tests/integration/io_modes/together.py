"""The results of several processes that use a file at once, in one mode or in several."""

import mmap
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.integration.io_modes.files import PAGE, READERS, WRITERS, Observed, Opened, aligned

ROUNDS = 60
PAGES = 96
RECORD = 512
VERSIONS = 300


def at_once(jobs: Sequence[Callable[[], object]]) -> list[int]:
    """Run each in a process of its own; return their exit codes."""
    children = []
    for job in jobs:
        child = os.fork()
        if child == 0:
            try:
                job()
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def appends_by_processes(folder: Path) -> Observed:
    """Nobody's record is lost, torn or written over, in any mode or in all of them."""

    def append(path: Path, flags: int, letter: int) -> None:
        with Opened(path, os.O_APPEND | flags) as fd:
            for _ in range(ROUNDS):
                assert os.writev(fd, [aligned(bytes([letter]) * RECORD)]) == RECORD

    modes = {"buffered": 0, "direct": os.O_DIRECT, "data synced": os.O_DSYNC}
    seen: Observed = {}
    for name, flags in {**modes, "mixed": None}.items():
        path = folder / f"appended-{name}"
        chosen = list(modes.values()) if flags is None else [flags] * 3
        jobs = [partial(append, path, how, 65 + n) for n, how in enumerate(chosen)]
        codes = at_once(jobs)
        content = path.read_bytes()
        records = [content[at : at + RECORD] for at in range(0, len(content), RECORD)]
        whole = sum(len(set(record)) == 1 for record in records)
        counts = [content.count(65 + n) // RECORD for n in range(3)]
        seen[name] = [codes, len(content), whole, counts]
    return seen


def pages_of_one_file(folder: Path) -> Observed:
    """Each mode writes every n-th page again and again; the last of each stays."""
    path = folder / "pages"
    path.write_bytes(bytes(PAGES * PAGE))
    writers = list(WRITERS.values())

    def write_own(number: int) -> None:
        flags, put = writers[number]
        with Opened(path, flags) as fd:
            for turn in range(ROUNDS // 6):
                for page in range(number, PAGES, len(writers)):
                    content = bytes([number * 32 + turn]) * PAGE
                    assert put(fd, content, page * PAGE) == PAGE

    codes = at_once([partial(write_own, n) for n in range(len(writers))])
    last = ROUNDS // 6 - 1
    wanted = b"".join(bytes([n % len(writers) * 32 + last]) * PAGE for n in range(PAGES))
    seen: Observed = {"codes": codes}
    for name, (flags, read) in READERS.items():
        with Opened(path, flags) as fd:
            seen[f"{name}: wrong pages"] = [
                page
                for page in range(PAGES)
                if read(fd, PAGE, page * PAGE) != wanted[page * PAGE : (page + 1) * PAGE]
            ]
    return seen


def one_writer_and_readers(folder: Path) -> Observed:
    """A read gives nothing older than what was acknowledged before it began, nor anything torn."""
    seen: Observed = {}
    for writer in ("buffered", "direct", "mapped"):
        for reader in READERS:
            path = folder / f"versions-{writer}-{reader}"
            path.write_bytes((0).to_bytes(8, "little") * (PAGE // 8))
            seen[f"{writer}, {reader}"] = _watched(path, writer, reader)
    return seen


def _watched(path: Path, writer: str, reader: str) -> list[object]:
    """Return the exit codes, how many reads were too old, and whether any was made meanwhile."""
    shared = mmap.mmap(-1, PAGE)
    counters = memoryview(shared).cast("Q")
    begun, done, old, reads, over = range(5)

    def write() -> None:
        flags, put = WRITERS[writer]
        with Opened(path, flags) as fd:
            for version in range(1, VERSIONS + 1):
                counters[begun] = version
                put(fd, version.to_bytes(8, "little") * (PAGE // 8), 0)
                counters[done] = version
                if version % 50 == 0:
                    time.sleep(0.001)
        counters[over] = 1

    def read() -> None:
        flags, get = READERS[reader]
        with Opened(path, flags) as fd:
            while not counters[over]:
                earliest = counters[done]
                words = set(memoryview(get(fd, PAGE, 0)).cast("Q"))
                latest = counters[begun]
                counters[reads] += 1
                counters[old] += any(not earliest <= word <= latest for word in words)

    codes = at_once([write, read])
    return [codes, counters[old], counters[reads] > 0]


def cut_while_written(folder: Path) -> Observed:
    """Truncation to nothing beside writers of both kinds: every page is old, new or zeroes."""
    path = folder / "cut-together"

    def write(flags: int, letter: int) -> None:
        with Opened(path, flags) as fd:
            for turn in range(ROUNDS * 2):
                os.pwritev(fd, [aligned(bytes([letter]) * PAGE)], turn % 16 * PAGE)

    def cut() -> None:
        with Opened(path) as fd:
            for _ in range(ROUNDS):
                os.ftruncate(fd, 0)
                os.ftruncate(fd, 16 * PAGE)

    codes = at_once([lambda: write(0, 98), lambda: write(os.O_DIRECT, 100), cut])
    content = path.read_bytes()
    mixed = [
        at
        for at in range(0, len(content), PAGE)
        if set(content[at : at + PAGE]) not in ({98}, {100}, {0})
    ]
    return {"codes": codes, "mixed pages": mixed, "size": len(content)}


CASES: list[Callable[[Path], Observed]] = [
    appends_by_processes,
    pages_of_one_file,
    one_writer_and_readers,
    cut_while_written,
]
