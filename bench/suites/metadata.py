"""The metadata engine without FUSE: the cost of each operation, and of very many inodes."""

import sys
from collections.abc import Iterator

from bench.google import Measured, run
from bench.scale import scale
from bench.table import Row, Target, main, row

NAMES = ("Create", "Lookup", "Rename", "Chmod", "Unlink")
# docs/EXPERIMENTS.md, "The engine": one fence; lines flushed on the critical path.
LINES = {"Create": 5, "Unlink": 3, "Rename": 5, "Chmod": 1}
CPU_NS = {"Create": 2000, "Lookup": 2000, "Rename": 2000, "Unlink": 2000}
MEDIA = {"pram": "PRAM", "optane": "Optane"}  # modelled: pmem/latency_region.h
THREADS_SPEED_UP = 1.7
WORDS_RATIO = 0.05
ENTRIES = (100, 1_000_000)
ENTRIES_SLOWDOWN = 2
SCAN_MS = 10  # of a full intent log of 64 MiB


def measure(quick: bool) -> list[Row]:
    """Return every row; META is memory, or a modelled medium where a row says so."""
    found = run("meta_bench", quick)
    rows = [line for name in NAMES for line in operation(name, found)]
    mixed = found["MixedWords/iterations:65536"].counters
    rows.append(row("mixed: words programmed for metadata", mixed["words"], "an operation"))
    rows.append(
        row(
            "mixed: words ÷ words of home blocks that each change touched",
            mixed["words_ratio"],
            "",
            Target(WORDS_RATIO),
        )
    )
    between = "mixed: the same, a block counted once between checkpoints of 256 operations"
    rows.append(row(between, mixed["checkpoint_words_ratio"], ""))
    travels = found["LineTravel/iterations:131072/real_time"].counters["items_per_second"]
    rows.append(row("2 threads: a cache line from core to core", 1e9 / travels, "ns"))
    scan = found["OpenIntentLog"].cpu_ns / 1e6
    rows.append(row("mount: scan of a full intent log of 64 MiB", scan, "ms", Target(SCAN_MS)))
    return [*rows, *directories(found), *scale(quick)]


def directories(found: dict[str, Measured]) -> Iterator[Row]:
    """Yield what the size of a directory costs, among a million files in all."""
    for name in ("Lookup", "Unlink"):
        few, many = (found[f"{name}Among/{n}/iterations:200000"].cpu_ns for n in ENTRIES)
        what = f"{name.lower()} in a directory of"
        yield row(f"{what} {ENTRIES[0]:,} entries: CPU time", few, "ns")
        yield row(f"{what} {ENTRIES[1]:,} entries: CPU time", many, "ns")
        yield row(
            f"{what} {ENTRIES[1]:,} ÷ {ENTRIES[0]:,}", many / few, "", Target(ENTRIES_SLOWDOWN)
        )


def operation(name: str, found: dict[str, Measured]) -> list[Row]:
    """Return the rows of one operation."""
    one, two = (found[f"{name}/memory/real_time/threads:{n}"] for n in (1, 2))
    apart = found[f"{name}/apart/real_time/threads:2"]

    def faster(threads: Measured) -> float:
        return threads.counters["items_per_second"] / one.counters["items_per_second"]

    what = name.lower()
    limit = CPU_NS.get(name)
    rows = [
        row(f"{what}: CPU time", one.cpu_ns, "ns", Target(limit) if limit else None),
        row(
            f"{what}: 2 threads ÷ 1",
            faster(two),
            "",
            Target(THREADS_SPEED_UP, at_least=True) if name != "Chmod" else None,
        ),
        row(f"{what}: 2 threads with a mount each ÷ 1, the machine's limit", faster(apart), ""),
    ]
    if name in LINES:
        rows.append(row(f"{what}: fences", one.counters["fences"], "", Target(1)))
        rows.append(row(f"{what}: lines flushed", one.counters["lines"], "", Target(LINES[name])))
    return [*rows, *on_media(name, found)]


def on_media(name: str, found: dict[str, Measured]) -> list[Row]:
    """Return how long the operation takes on modelled media, waits included."""
    rows = []
    for medium, title in MEDIA.items():
        [measured] = [m for n, m in found.items() if n.startswith(f"{name}/{medium}/")]
        ns = 1e9 / measured.counters["items_per_second"]
        rows.append(row(f"{name.lower()}: on modelled {title}", ns / 1000, "µs"))
    return rows


if __name__ == "__main__":
    sys.exit(main("metadata", __doc__.splitlines()[0], measure))
