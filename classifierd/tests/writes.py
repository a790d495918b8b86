"""Made-up writes of several programs at once. Sizes are in 4 KiB pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from classifierd.contexts import VStream
from classifierd.records import BLOCK_BYTES, KIND_TRIM, Ints, Records, make

# (random generator, pages to write, pages of the region) -> (first pages, lengths).
Writes = Callable[[np.random.Generator, int, int], tuple[Ints, Ints]]


@dataclass(frozen=True)
class Writer:
    """A program that writes a region of its own, at its share of all pages written."""

    vstream: VStream
    region: int
    share: float
    writes: Writes
    filled: bool = False  # the region is written once before everything else


def appends(bytes_mean: float) -> Writes:
    """Appends to a recycled log: each rewrites the page in which the one before it ended."""

    def writes(rng: np.random.Generator, pages: int, region: int) -> tuple[Ints, Ints]:
        count = int(pages / (bytes_mean / BLOCK_BYTES + 1)) + 1
        end = np.cumsum(rng.gamma(2.0, bytes_mean / 2, count).astype(np.int64) + 1)
        first = np.append(0, end[:-1]) // BLOCK_BYTES
        length = (end - 1) // BLOCK_BYTES - first + 1
        return first % region, np.minimum(length, region - first % region)

    return writes


def overwrites(rng: np.random.Generator, pages: int, region: int) -> tuple[Ints, Ints]:
    """Overwrite pages of the region at random."""
    return rng.integers(0, region, pages), np.ones(pages, np.int64)


def large(_: np.random.Generator, pages: int, region: int) -> tuple[Ints, Ints]:
    """Write the region from end to end, over and over."""
    first = np.arange(pages // 128 + 1) * 128 % (region // 128 * 128)
    return first, np.full(len(first), 128)


def mixed(writers: list[Writer], pages: int, seed: int) -> tuple[Records, list[VStream]]:
    """Interleave about `pages` pages of all writers; `filled` regions are written once before."""
    rng = np.random.default_rng(seed)
    parts, times, base = [], [], 0
    for writer in writers:
        first, length = writer.writes(rng, int(pages * writer.share), writer.region)
        times.append(np.cumsum(length) / writer.share)
        parts.append(make(base + first, length, vstream=writer.vstream.number))
        if writer.filled:
            fill = np.arange(0, writer.region, 256)
            length = np.minimum(256, writer.region - fill)
            parts.append(make(base + fill, length, vstream=writer.vstream.number))
            times.append(np.zeros(len(fill)))
        base += writer.region
    order = np.argsort(np.concatenate(times), kind="stable")
    return np.concatenate(parts)[order], [writer.vstream for writer in writers]


def _context(number: int, comm: str, ext: str, directory: str) -> VStream:
    return VStream(number, "context", "", comm, ext, directory)


def logs_and_files(pages: int, seed: int, live: int) -> tuple[Records, list[VStream]]:
    """Databases with logs, and files that are written in large requests."""
    wal = _context(1, "postgres", "#", "pg_wal")
    heap = _context(2, "postgres", "#", "base")
    lite = _context(3, "app", "db-wal", "app")
    tables = _context(4, "rocksdb:low", "sst", "store")
    media = _context(5, "copy", "mp4", "media")
    return mixed(
        [
            Writer(wal, live // 16, 0.35, appends(2500.0)),
            Writer(heap, live * 5 // 16, 0.15, overwrites, filled=True),
            Writer(lite, live // 128, 0.10, appends(9000.0)),
            Writer(tables, live * 6 // 16, 0.25, large),
            Writer(media, live * 3 // 16, 0.15, large),
        ],
        pages,
        seed,
    )


def logs(pages: int, seed: int, live: int) -> tuple[Records, list[VStream]]:
    """Logs of several sizes under one vStream: only the place in a request tells them apart."""
    one = VStream(0)
    means = (1200.0, 3000.0, 6000.0, 20000.0)
    regions = (live // 2, live // 4, live // 8, live // 8)
    writers = [
        Writer(one, region, 0.25, appends(mean))
        for region, mean in zip(regions, means, strict=True)
    ]
    return mixed(writers, pages, seed)


def hot_and_cold_files(pages: int, seed: int, live: int) -> tuple[Records, list[VStream]]:
    """Two programs, of which one writes much to little."""
    hot, cold = _context(1, "hot", "db", "a"), _context(2, "cold", "db", "b")
    return mixed(
        [
            Writer(hot, live // 8, 0.8, overwrites, filled=True),
            Writer(cold, live * 7 // 8, 0.2, overwrites, filled=True),
        ],
        pages,
        seed,
    )


def epochs(records: Records, pages: int) -> list[Records]:
    """Split the records into parts of about `pages` pages written."""
    written = np.cumsum(np.where(records["kind"] != KIND_TRIM, records["pages"], 0).astype(int))
    cuts = np.searchsorted(written, np.arange(pages, written[-1], pages), side="left") + 1
    return np.split(records, np.unique(cuts))
