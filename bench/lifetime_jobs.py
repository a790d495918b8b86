"""Writers whose data has a few lifetimes, for a mounted filesystem.

A job makes its files when it starts and then writes without end, one request at a time, with
O_DIRECT, so that each request reaches the filesystem as it is.
"""

import itertools
import math
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

PAGE_BYTES = 4096
LONG_PAGES = 32  # a sequential request: 128 KiB
BATCH = 1 << 14  # random numbers drawn at once

Ints = npt.NDArray[np.int64]
# A job for files of so many pages in all, and a seed; yields the pages of each request written.
Job = Callable[["Folder", int, int], Iterator[int]]


@dataclass
class Folder:
    """Where a job's files lie: in one folder, or in a folder for each label."""

    root: Path
    labelled: bool
    files: dict[str, int] = field(default_factory=dict)  # open files by name

    def open(self, name: str, label: str) -> int:
        """Make a file, which close() closes."""
        folder = self.root / label if self.labelled else self.root
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_DIRECT
        self.files[name] = os.open(folder / name, flags, 0o644)
        return self.files[name]

    def remove(self, name: str, label: str) -> None:
        """Delete a file, open or closed."""
        os.close(self.files.pop(name))
        (self.root / label / name if self.labelled else self.root / name).unlink()

    def close(self) -> None:
        """Close all files."""
        for file in self.files.values():
            os.close(file)
        self.files.clear()


def sequential(lifetimes: Sequence[int]) -> Job:
    """Make a job that rewrites a file for each lifetime from its start to its end, in turns.

    The files get equal shares of the writes, so their sizes are in proportion to the lifetimes
    (Choi's four, Vishwakarma's three: lab/workload/fio4.cc, emmc3.cc).
    """

    def run(folder: Folder, pages: int, seed: int) -> Iterator[int]:
        rng, whole = np.random.default_rng(seed), sum(lifetimes)
        sizes = [max(1, pages * each // whole // LONG_PAGES) for each in lifetimes]  # requests
        files = [folder.open(f"data-{i}", f"life-{i}") for i in range(len(lifetimes))]
        at = [0] * len(files)
        for i, size in enumerate(sizes):
            for request in range(size):
                yield _write(files[i], request * LONG_PAGES, LONG_PAGES)
        while True:
            for i in rng.integers(0, len(files), BATCH).tolist():
                yield _write(files[i], at[i] * LONG_PAGES, LONG_PAGES)
                at[i] = (at[i] + 1) % sizes[i]

    return run


def whole_files(folder: Folder, pages: int, seed: int) -> Iterator[int]:
    """Let three writers replace whole files, each of its size and pace, side by side.

    They take turns request by request, so that their data shares erase blocks without streams.
    """
    kinds = ((64, 0.4, 8), (1024, 0.4, 4), (4096, 0.2, 2))  # pages a file, share, part of `pages`
    rng, *of_writers = np.random.default_rng(seed).spawn(1 + len(kinds))
    counts = [max(2, pages // part // size) for size, _, part in kinds]
    writers = [
        _replace_files(folder, f"life-{kind}", size, counts[kind], of_writers[kind])
        for kind, (size, _, _) in enumerate(kinds)
    ]
    for writer, count, (size, _, _) in zip(writers, counts, kinds, strict=True):
        yield from islice(writer, count * size // LONG_PAGES)
    while True:
        for kind in rng.choice(len(kinds), BATCH, p=[share for _, share, _ in kinds]).tolist():
            yield next(writers[kind])


def _replace_files(
    folder: Folder, label: str, size: int, count: int, rng: np.random.Generator
) -> Iterator[int]:
    """Write so many files of a size, then delete a random one before each new one."""
    live: list[str] = []
    for number in itertools.count():
        if len(live) == count:
            folder.remove(live.pop(int(rng.integers(count))), label)
        live.append(f"{label}-{number}")
        file = folder.open(live[-1], label)
        for at in range(0, size, LONG_PAGES):
            yield _write(file, at, LONG_PAGES)


def zipf(folder: Folder, pages: int, seed: int) -> Iterator[int]:
    """Overwrite pages at random, the page of rank k in proportion to 1 ÷ k^.99.

    The labels tell apart four parts that take equal shares of the writes.
    """
    ranks = np.cumsum(np.arange(1, pages + 1) ** -0.99)

    def draw(rng: np.random.Generator) -> Ints:
        at: Ints = np.searchsorted(ranks, rng.random(BATCH) * ranks[-1]).astype(np.int64)
        return at

    parts = np.searchsorted(ranks, ranks[-1] * np.array([0.25, 0.5, 0.75])) + 1
    yield from _at_random(folder, [0, *parts.tolist(), pages], seed, draw, _coprime)


def hot_and_cold(folder: Folder, pages: int, seed: int) -> Iterator[int]:
    """Overwrite pages at random, nine writes in ten to one tenth of them, which a label names."""
    hot = pages // 10

    def draw(rng: np.random.Generator) -> Ints:
        is_hot = rng.random(BATCH) < 0.9
        return np.where(is_hot, rng.integers(0, hot, BATCH), rng.integers(hot, pages, BATCH))

    yield from _at_random(folder, [0, hot, pages], seed, draw, lambda _: 1)


def _at_random(
    folder: Folder,
    parts: list[int],
    seed: int,
    draw: Callable[[np.random.Generator], Ints],
    stride_in: Callable[[int], int],
) -> Iterator[int]:
    """Fill one file, or with labels one for each part, and then write a page for each rank drawn.

    Part i holds the ranks from parts[i] to parts[i + 1]. Ranks that follow each other are
    stride_in(pages of the file) apart.
    """
    starts = np.array(parts if folder.labelled else [0, parts[-1]])
    sizes = np.diff(starts)
    rng = np.random.default_rng(seed)
    files = [folder.open(f"data-{i}", f"life-{i}") for i in range(len(sizes))]
    for file, size in zip(files, sizes.tolist(), strict=True):
        for at in range(0, size, LONG_PAGES):
            yield _write(file, at, min(LONG_PAGES, size - at))
    strides = np.array([stride_in(size) for size in sizes.tolist()])
    while True:
        rank = draw(rng)
        part = np.searchsorted(starts, rank, side="right") - 1
        page = (rank - starts[part]) * strides[part] % sizes[part]
        for i, at in zip(part.tolist(), page.tolist(), strict=True):
            yield _write(files[i], at, 1)


def _coprime(size: int) -> int:
    """Return a number near the golden section of `size` that has no divisor in common with it."""
    stride = max(1, int(size * 0.618))
    while math.gcd(stride, size) != 1:
        stride += 1
    return stride


def _write(file: int, page: int, pages: int) -> int:
    """Write pages of zeroes and return their number."""
    os.pwrite(file, memoryview(_BUFFER)[: pages * PAGE_BYTES], page * PAGE_BYTES)
    return pages


_BUFFER = mmap.mmap(-1, LONG_PAGES * PAGE_BYTES)  # aligned, as O_DIRECT wants it
