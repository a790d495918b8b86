"""Generated workloads, for replay without any filesystem. Seeded; nothing here is measured.

Each source writes its own region at its own share of all pages written; sources are interleaved
in proportion to their shares. Sizes are in 4 KiB pages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from classifierd.contexts import VStream
from classifierd.records import BLOCK_BYTES, Records, make

Generator = np.random.Generator
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Requests:
    """The requests of a source, in order: parallel arrays."""

    block: Ints
    pages: Ints
    trim: npt.NDArray[np.bool_]

    @staticmethod
    def writes(block: Ints, pages: Ints) -> Requests:
        """Requests that are all writes."""
        return Requests(block, pages, np.zeros(len(block), np.bool_))


def log_appends(rng: Generator, writes: int, region: int, bytes_mean: float) -> Requests:
    """A recycled log: every append rewrites the page the one before it ended in."""
    count = int(writes / (bytes_mean / BLOCK_BYTES + 1)) + 1
    length = rng.gamma(2.0, bytes_mean / 2, count).astype(np.int64) + 1
    end = np.cumsum(length)
    first, last = (end - length) // BLOCK_BYTES, (end - 1) // BLOCK_BYTES
    block = first % region
    return Requests.writes(block, np.minimum(last - first + 1, region - block))


def overwrites(
    rng: Generator, writes: int, region: int, *, hot: float = 0.1, share: float = 0.9
) -> Requests:
    """Overwrite single pages at random: `share` of them in the first `hot` part of the region."""
    hot_pages = max(1, int(region * hot))
    is_hot = rng.random(writes) < share
    block = np.where(
        is_hot, rng.integers(0, hot_pages, writes), rng.integers(hot_pages, region, writes)
    )
    return Requests.writes(block, np.ones(writes, np.int64))


def file_churn(rng: Generator, writes: int, region: int, file_pages: int) -> Requests:
    """Files written whole in 1 MiB requests and deleted whole, a random one for each new one."""
    file_pages = min(file_pages, region)
    slots, run = region // file_pages, 256
    files = writes // file_pages + 1
    slot = np.concatenate([rng.permutation(slots), rng.integers(0, slots, files)])[:files]
    starts = np.arange(0, file_pages, run)
    lengths = np.minimum(run, file_pages - starts)
    # For each file: one trim of the slot's last tenant, then its writes.
    block = slot[:, None] * file_pages + np.concatenate([[0], starts])[None, :]
    pages = np.broadcast_to(np.concatenate([[file_pages], lengths]), block.shape)
    trim = np.zeros(block.shape, np.bool_)
    trim[:, 0] = True
    return Requests(block.reshape(-1), pages.reshape(-1).copy(), trim.reshape(-1))


def sequential(rng: Generator, writes: int, region: int) -> Requests:
    """Write a region from end to end in 512 KiB requests, over and over."""
    del rng
    run = 128
    count = writes // run + 1
    block = np.arange(count) * run % (region // run * run)
    return Requests.writes(block, np.full(count, run))


@dataclass(frozen=True)
class Source:
    """A program of a workload: who writes, where, how much of all, and how."""

    vstream: VStream
    region: int
    share: float
    generate: Callable[[Generator, int, int], Requests]
    filled: bool = False  # the region is written once before everything else


def interleave(sources: list[Source], writes: int, seed: int) -> tuple[Records, list[VStream]]:
    """Mix the sources: about `writes` pages in all, and what fills the regions before."""
    rng = np.random.default_rng(seed)
    parts, times, base = [], [], 0
    for source in sources:
        requests = source.generate(rng, int(writes * source.share), source.region)
        cost = np.where(requests.trim, 0, requests.pages)
        jitter = rng.random(len(cost)) * 0.5
        times.append((np.cumsum(cost) - cost * jitter) / source.share)
        parts.append(
            make(
                requests.block + base,
                requests.pages,
                trim=requests.trim,
                vstream=source.vstream.number,
            )
        )
        if source.filled:
            fill = np.arange(0, source.region, 256)
            length = np.minimum(256, source.region - fill)
            parts.append(make(fill + base, length, vstream=source.vstream.number))
            times.append(np.zeros(len(fill)))
        base += source.region
    order = np.argsort(np.concatenate(times), kind="stable")
    return np.concatenate(parts)[order], [source.vstream for source in sources]


def _context(number: int, comm: str, ext: str, directory: str) -> VStream:
    return VStream(number, "context", "", comm, ext, directory)


def log_tail_mix(writes: int, seed: int, live: int) -> tuple[Records, list[VStream]]:
    """Databases with logs, a store of whole files, and what is written once in a while."""
    wal = _context(1, "postgres", "#", "pg_wal")
    heap = _context(2, "postgres", "#", "base")
    lite = _context(3, "app", "db-wal", "app")
    tables = _context(4, "rocksdb:low", "sst", "store")
    media = _context(5, "copy", "mp4", "media")
    return interleave(
        [
            Source(wal, live // 16, 0.35, partial(log_appends, bytes_mean=2500.0)),
            Source(heap, live * 5 // 16, 0.15, overwrites, filled=True),
            Source(lite, live // 128, 0.10, partial(log_appends, bytes_mean=9000.0)),
            Source(tables, live * 6 // 16, 0.25, partial(file_churn, file_pages=4096)),
            Source(media, live * 3 // 16, 0.15, sequential),
        ],
        writes,
        seed,
    )


def logs_only(writes: int, seed: int, live: int) -> tuple[Records, list[VStream]]:
    """Log tails and log cycles of several sizes, all under one vStream: only the shape tells."""
    one = VStream(0)
    sizes = [live // 2, live // 4, live // 8, live // 8]
    means = [1200.0, 3000.0, 6000.0, 20000.0]
    return interleave(
        [
            Source(one, size, 0.25, partial(log_appends, bytes_mean=mean))
            for size, mean in zip(sizes, means, strict=True)
        ],
        writes,
        seed,
    )


def hot_cold_files(writes: int, seed: int, live: int) -> tuple[Records, list[VStream]]:
    """A hot and a cold program side by side, told apart by their names only."""

    def uniform(rng: Generator, count: int, region: int) -> Requests:
        return overwrites(rng, count, region, hot=0.5, share=0.5)

    hot, cold = _context(1, "hot", "db", "a"), _context(2, "cold", "db", "b")
    return interleave(
        [
            Source(hot, live // 8, 0.8, uniform, filled=True),
            Source(cold, live * 7 // 8, 0.2, uniform, filled=True),
        ],
        writes,
        seed,
    )


def whole_files(writes: int, seed: int, live: int) -> tuple[Records, list[VStream]]:
    """Files of three sizes and paces, deleted whole."""
    rows = [("obj", 64, 0.4, 8), ("sst", 1024, 0.4, 4), ("tar", 8192, 0.2, 2)]
    return interleave(
        [
            Source(
                _context(i + 1, "writer", ext, ext),
                live // part,
                share,
                partial(file_churn, file_pages=pages),
            )
            for i, (ext, pages, share, part) in enumerate(rows)
        ],
        writes,
        seed,
    )


WORKLOADS: dict[str, Callable[[int, int, int], tuple[Records, list[VStream]]]] = {
    "log-tail-mix": log_tail_mix,
    "logs-only": logs_only,
    "hot-cold": hot_cold_files,
    "whole-files": whole_files,
    "sequential": lambda writes, seed, live: interleave(
        [Source(VStream(0), live, 1.0, sequential)], writes, seed
    ),
}
