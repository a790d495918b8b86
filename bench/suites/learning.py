"""The cost of learning in the daemon, how soon it knows, and the cost of the daemon's death.

In this process, on simulated devices; who is killed is the daemon of a mount.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np
from bench.disturbed import run as disturbed_run
from bench.learner import (
    AHEAD,
    PAGES_A_SECOND,
    STREAMS,
    WINDOW,
    core_share,
    day_of,
    disturbed,
    epoch_over,
    knowledge,
    pages_of,
    settled,
    shifting,
    tagged,
    tagged_knowing,
    tagged_on_a_mount,
    waf_by_window,
)
from bench.table import Row, Target, main, row, unavailable

from classifierd import _core
from classifierd.contest import CANDIDATES
from classifierd.records import BLOCK_BYTES
from classifierd.traces import telemetry
from streamfs_lab.workloads import WORKLOADS

# The learners: the life table alone, or all candidates in competition, the logistic model included.
LEARNERS: tuple[tuple[str, tuple[str, ...], float], ...] = (
    ("table alone", ("life-table",), 2.0),
    ("contest with the logistic model", CANDIDATES, 10.0),
)
LIVE_PAGES = 1 << 18  # 1 GiB
ACTIVE_CHUNKS, EPOCH_SECONDS, EPOCH_MIB = 1 << 20, 2.0, 256.0
SHIFT, COLD_GIB = 0.05, 1.0
KILLS, KILLS_WAF = 50, 1.05
GROWN_MIB = 8.0  # memory that an allocator may hold on to


def measure(quick: bool) -> list[Row]:
    """Return every row."""
    return [*cpu(quick), *epoch(quick), *shifts(quick), *cold(quick), *day(quick), *kills(quick)]


def cpu(quick: bool) -> Iterator[Row]:
    """Yield what 50,000 pages a second take of a core."""
    live = LIVE_PAGES // 4 if quick else LIVE_PAGES
    for name, candidates, limit in LEARNERS:
        for pages in (1, 32):
            known = knowledge(live, live, candidates)
            share = core_share(known, live, pages, (4 if quick else 20) * PAGES_A_SECOND)
            label = f"50,000 pages/s, {pages} a request: CPU, {name}"
            yield row(label, 100 * share, "% of a core", Target(limit))


def epoch(quick: bool) -> Iterator[Row]:
    """Yield what an epoch's end takes when many chunks are active."""
    chunks = ACTIVE_CHUNKS // 8 if quick else ACTIVE_CHUNKS
    for name, candidates, _ in LEARNERS:
        found = epoch_over(chunks, candidates)
        label = f"an epoch's end, {chunks:,} active chunks, {name}"
        yield row(f"{label}: time", found.seconds, "s of CPU", Target(EPOCH_SECONDS))
        yield row(f"{label}: memory", found.memory_mib, "MiB", Target(EPOCH_MIB))


def shifts(quick: bool) -> Iterator[Row]:
    """Yield how much is written past a shift of the hot set before WAF is as it will be."""
    live = LIVE_PAGES // 16 if quick else LIVE_PAGES
    phases, capacities = (3, 4) if quick else (4, 8)
    records = shifting(live, phases, capacities, 1)
    for name, tags in (
        ("learned", tagged(records, live)),
        ("true lifetimes", tagged_knowing(records, live)),
        ("no separation", np.zeros(int(records["pages"].sum()), np.uint8)),
    ):
        waf = waf_by_window(records, tags, live)
        parts = np.split(waf, _phase_starts(len(waf), phases, capacities))[2:]
        steady = [float(part[len(part) // 2 :].mean()) for part in parts]
        late = [disturbed(part, one) for part, one in zip(parts, steady, strict=True)]
        label = f"hot set shifts, {name}"
        limit = Target(SHIFT) if name == "learned" else None
        yield row(f"{label}: written until within 10 % of steady for good, worst", max(late),
                  "of live", limit)  # fmt: skip
        yield row(f"{label}: steady WAF", fmean(steady), f"{min(steady):.2f} to {max(steady):.2f}")


def _phase_starts(windows: int, phases: int, capacities: int) -> list[int]:
    """Where phases begin, what is written once before aside."""
    return [
        round(windows * (1 + i * capacities) / (1 + phases * capacities)) for i in range(phases)
    ]


def cold(quick: bool) -> Iterator[Row]:
    """Yield how much a daemon sees that comes to a full device, before WAF is steady.

    Also yield how long that takes where lifetimes are known from the first page on. Data in the
    wrong blocks must die first, under any placement.
    """
    live = LIVE_PAGES // 16 if quick else LIVE_PAGES
    for name in ("log-tail-mix", "hot-cold"):
        records = telemetry(WORKLOADS[name](12 * live, 1, live)[0])
        begins = len(records) // 3
        written = pages_of(records[:begins])
        before = np.full(written, STREAMS - 1, np.uint8)
        peak = _core.PageTrace(records).peak_live
        label, early = f"cold start, {name}, {peak * BLOCK_BYTES / 2**30:.2g} GiB live", {}
        for who, tags in (
            ("true lifetimes", tagged_knowing(records, peak)[written:]),
            ("learned", tagged_on_a_mount(records[begins:], peak)),
        ):
            waf = waf_by_window(records, np.concatenate([before, tags]), peak)
            waf = waf[round(written / (peak * WINDOW)) :]
            steady = float(waf[-len(waf) // 4 :].mean())
            gib = settled(waf, steady) * peak * BLOCK_BYTES / 2**30
            limit = Target(COLD_GIB) if who == "learned" else None
            yield row(f"{label}, {who}: written to within 10 % of steady", gib, "GiB", limit)
            yield row(f"{label}, {who}: steady WAF", steady, f"{waf[:AHEAD].mean():.2f} at first")
            early[who] = float(waf[: round(1 / WINDOW)].mean())
        ratio = early["learned"] / early["true lifetimes"]
        of = "WAF while as much is written as is live, learned ÷ true lifetimes"
        yield row(f"{label}: {of}", ratio, "")


def day(quick: bool) -> Iterator[Row]:
    """Yield what 24 hours of a mix do to classes and memory."""
    live, pages = (LIVE_PAGES // 16, 1 << 20) if quick else (LIVE_PAGES, 1 << 24)
    found = day_of(live, pages)
    label = f"24 hours of a mix, {pages * BLOCK_BYTES / 2**30:g} GiB"
    yield row(f"{label}: volume that changes class in an hour", found.moved, "")
    yield row(f"{label}: in the worst hour after three", found.moved_most, "")
    yield row(f"{label}: in the worst hour after eight", found.moved_late, "")
    grown = Target(GROWN_MIB)
    yield row(f"{label}: memory grows after eight hours", found.grown_mib, "MiB", grown)


def kills(quick: bool) -> Iterator[Row]:
    """Yield what it costs a program that the daemon is killed, stopped and started over and over.

    Calls are compared with a run whose daemon is left alone.
    """
    times = 3 if quick else KILLS
    label = f"daemon killed, stopped and started {times} times"
    if os.geteuid() != 0:
        yield unavailable(label, "these mounts are root's")
        return
    with TemporaryDirectory(prefix="streamfs-bench-") as work:
        found = disturbed_run(Path(work) / "disturbed", times=times, rounds=2000)
        alone = disturbed_run(Path(work) / "alone", times=0, rounds=found.rounds)
    yield row(f"{label}: WAF ÷ undisturbed", found.waf / alone.waf, "", Target(KILLS_WAF))
    limit = 2 * alone.p99_ms
    yield row(f"{label}: p99 of a call", found.p99_ms, f"ms, {alone.p99_ms:.2f} undisturbed")
    yield row(f"{label}: calls beyond twice the undisturbed p99", 100 * found.beyond(limit),
              f"%, {100 * alone.beyond(limit):.2f} undisturbed")  # fmt: skip
    yield row(f"{label}: longest call", float(found.latencies_ms.max()),
              f"ms, {alone.latencies_ms.max():.0f} undisturbed")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main("learning", __doc__.splitlines()[0], measure))
