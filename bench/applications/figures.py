"""The outcomes of runs, as figures over seeds, and the targets of these figures.

Every figure is of the rounds that count. A run whose effective spare is out of its range is void:
it counts in no figure, and the table says how many there were.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.applications.rows import CONTROLS, SEPARATING, AppRow
from bench.emulated.replays import Replays, share_closed
from bench.emulated.run import Outcome
from bench.emulated.ssd import SPARE, SPARE_TOLERANCE
from bench.table import Row, Target, row, unavailable

MIXED_GAP_CLOSED = Target(0.8, at_least=True)
BELOW_CONTROLS = Target(1)
# NAND bytes per application byte, learned, without power-loss protection.
NAND_WITH_INTENT_LOG = {
    "mixed": Target(1.35),
    "sqlite-rollback": Target(0.9),
    "postgresql": Target(1.7),
}
# RocksDB under YCSB, half reads: the multi-stream SSD's authors, against the same SSD without.
SOURCE_LIFETIME, SOURCE_THROUGHPUT = 0.54, 0.15
SOURCE_WAF_MIN = 1 + SOURCE_LIFETIME  # of less than that no placement can save so much
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Run:
    """A run that ended, by its seed."""

    seed: int
    outcome: Outcome

    @property
    def void(self) -> bool:
        """Whether its effective spare is out of range."""
        return abs(self.outcome.counters.effective_spare - SPARE) > SPARE_TOLERANCE


@dataclass
class Cell:
    """A row of programs on one kind of device and of META, stored in every way."""

    row: AppRow
    plp: bool  # the device has power-loss protection
    meta: str = "synced"  # of bench.emulated.controls.META
    runs: dict[str, list[Run]] = field(default_factory=dict)  # by way
    replays: dict[int, Replays] = field(default_factory=dict)  # by seed
    failed: dict[str, int] = field(default_factory=dict)  # by way: runs without an end

    @property
    def name(self) -> str:
        """Name it in tables."""
        emulated = "" if self.meta == "synced" else f", META {self.meta} (emulated)"
        return f"{self.row.title}, {'with' if self.plp else 'without'} PLP{emulated}"

    def valid(self, way: str) -> list[Run]:
        """Return a way's runs that count."""
        return [run for run in self.runs.get(way, []) if not run.void]

    def voids(self, way: str) -> int:
        """Return how many do not."""
        return len(self.runs.get(way, [])) - len(self.valid(way))

    def values(self, way: str, figure: "Figure") -> list[float]:
        """Return a figure of each run that has it."""
        found = (figure.of(self, run) for run in self.valid(way))
        return [value for value in found if value is not None]

    def mean(self, way: str, figure: "Figure") -> float | None:
        """Return its mean; None if no run has it."""
        values = self.values(way, figure)
        return statistics.fmean(values) if values else None


@dataclass(frozen=True)
class Figure:
    """A column: what a run came to, and how it is written."""

    title: str
    unit: str
    of: Callable[[Cell, Run], float | None]
    digits: int = 3


def _gap(cell: Cell, run: Run, start: Callable[[Replays], float]) -> float | None:
    # A replay flushes nothing, so it has no padding: without protection there is no such gap. The
    # replayed trace is streamfs's, because other filesystems write something else.
    replays = cell.replays.get(run.seed)
    if replays is None or not cell.plp or run.outcome.mode in CONTROLS:
        return None
    return share_closed(start(replays), run.outcome.counters.waf, replays.oracle_waf)


def _throughput(run: Run) -> float | None:
    seconds = run.outcome.counters.saturated_seconds
    return run.outcome.app_bytes / 1e6 / seconds if seconds else None


NAND = Figure("NAND bytes per application byte", "", lambda _, r: r.outcome.nand_per_app_byte)
WAF = Figure("WAF", "", lambda _, r: r.outcome.counters.waf)
GC_WAF = Figure("WAF without padding", "", lambda _, r: r.outcome.counters.gc_waf)
ERASES = Figure(
    "erases per application GiB",
    "",
    lambda _, r: r.outcome.counters.erases * GIB / r.outcome.app_bytes,
    0,
)
FLUSHES = Figure(
    "flushes per application MiB",
    "",
    lambda _, r: r.outcome.counters.flushes * MIB / r.outcome.app_bytes,
    1,
)
PADDING = Figure(
    "padding per flush, KiB",
    "KiB",
    lambda _, r: r.outcome.counters.pad_bytes / KIB / max(r.outcome.counters.flushes, 1),
    1,
)
THROUGHPUT = Figure(
    "application MB a second, virtual clock", "MB/s", lambda _, r: _throughput(r), 0
)
P99 = Figure("write p99, virtual clock", "µs", lambda _, r: r.outcome.counters.p99_us, 0)
SPARE_LEFT = Figure("effective spare", "", lambda _, r: r.outcome.counters.effective_spare, 4)
FROM_NOSEP = Figure("gap closed from nosep", "", lambda c, r: _gap(c, r, lambda x: x.nosep_waf), 2)
FROM_SEPGC = Figure("gap closed from sepgc", "", lambda c, r: _gap(c, r, lambda x: x.sepgc_waf), 2)
FIGURES = (
    NAND,
    WAF,
    GC_WAF,
    ERASES,
    FLUSHES,
    PADDING,
    THROUGHPUT,
    P99,
    SPARE_LEFT,
    FROM_NOSEP,
    FROM_SEPGC,
)


def rows_of(cell: Cell) -> Iterator[Row]:
    """Yield all there is to say of a cell, in the form of every bench."""
    for way in cell.runs:
        for figure in FIGURES:
            yield from _figure(cell, way, figure)
        if cell.voids(way):
            yield row(f"{cell.name}, {way}: void runs", cell.voids(way), "effective spare")
        if failed := cell.failed.get(way):
            yield row(f"{cell.name}, {way}: failed runs", failed, "")
    yield from _beside_controls(cell)
    yield from _replayed(cell)
    if cell.row.rocksdb:
        yield from _beside_source(cell)


def _figure(cell: Cell, way: str, figure: Figure) -> Iterator[Row]:
    values = cell.values(way, figure)
    if not values:
        return
    count = "1 seed" if len(values) == 1 else f"{len(values)} seeds"
    spread = f"{figure.unit} {min(values):.4g} to {max(values):.4g}, {count}".strip()
    name = f"{cell.name}, {way}: {figure.title}"
    yield row(name, statistics.fmean(values), spread, _target(cell, way, figure))


def _target(cell: Cell, way: str, figure: Figure) -> Target | None:
    if cell.row.name == "mixed" and figure is FROM_NOSEP and way in SEPARATING:
        return MIXED_GAP_CLOSED
    if figure is NAND and way == "learned" and not cell.plp and cell.meta != "synced":
        return NAND_WITH_INTENT_LOG.get(cell.row.name)
    return None


def beside(cell: Cell, way: str, other: str, figure: Figure) -> float | None:
    """Return a way's mean ÷ another's; None without both."""
    here, there = cell.mean(way, figure), cell.mean(other, figure)
    return here / there if here is not None and there else None


def _beside_controls(cell: Cell) -> Iterator[Row]:
    for way in SEPARATING:
        for control in CONTROLS:
            found = beside(cell, way, control, NAND)
            if found is not None:
                name = f"{cell.name}, {way}: NAND per application byte ÷ {control}'s"
                yield row(name, found, "", BELOW_CONTROLS)


def _replayed(cell: Cell) -> Iterator[Row]:
    for name in ("nosep", "sepgc", "oracle"):
        values = [getattr(each, f"{name}_waf") for each in cell.replays.values()]
        if values:
            spread = f"{min(values):.3f} to {max(values):.3f}"
            yield row(f"{cell.name}, replayed: {name}, WAF", statistics.fmean(values), spread)


def _beside_source(cell: Cell) -> Iterator[Row]:
    off = cell.mean("off", GC_WAF)
    if off is None:
        return
    enough = "the source's +54 % can be had" if off >= SOURCE_WAF_MIN else "too low for +54 %"
    yield row(f"{cell.name}: streams-off WAF without padding", off, enough)
    for way in SEPARATING:
        lifetime, speed = beside(cell, "off", way, NAND), beside(cell, way, "off", THROUGHPUT)
        if lifetime is None or speed is None:
            yield unavailable(f"{cell.name}, {way}: lifetime", "no run counts")
            continue
        yield row(f"{cell.name}, {way}: lifetime gained", lifetime - 1, f"source {SOURCE_LIFETIME}")
        gained = f"source {SOURCE_THROUGHPUT}"
        yield row(f"{cell.name}, {way}: throughput gained", speed - 1, gained)


def missed(rows: Sequence[Row]) -> list[Row]:
    """Return those that miss their target."""
    return [one for one in rows if one.met is False]
