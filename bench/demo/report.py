"""The demo's report: a table, a picture, and the JSON."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.emulated.replays import Replays, share_closed
from bench.emulated.run import Outcome
from bench.emulated.ssd import SPARE, SPARE_TOLERANCE
from rich.console import Console
from rich.table import Table

CONTROL_WAF_MIN = 1.2
GAP_CLOSED_TARGET = 0.6
TITLES = {
    "ext4": "ext4\ncontrol",
    "off": "streamfs\noff",
    "learned": "streamfs\nlearned",
    "hints": "streamfs\nhints, daemon",
}


@dataclass(frozen=True)
class Report:
    """All runs and what they are measured against."""

    outcomes: list[Outcome]
    replays: Replays | None

    def _waf(self, mode: str) -> float | None:
        return next((o.counters.waf for o in self.outcomes if o.mode == mode), None)

    def gap_closed_from_off(self, outcome: Outcome) -> float | None:
        """Return the share of the gap from streams off to the oracle that a run closes."""
        off = self._waf("off")
        if off is None or self.replays is None:
            return None
        return share_closed(off, outcome.counters.waf, self.replays.oracle_waf)

    def gap_closed(self, outcome: Outcome) -> float | None:
        """Return the same from the trace replayed with no separation at all."""
        if self.replays is None:
            return None
        return share_closed(self.replays.nosep_waf, outcome.counters.waf, self.replays.oracle_waf)

    def void(self) -> list[str]:
        """Why these figures say nothing; empty if they do say something."""
        reasons = []
        for outcome in self.outcomes:
            spare = outcome.counters.effective_spare
            if abs(spare - SPARE) > SPARE_TOLERANCE:
                reasons.append(f"{outcome.mode}: effective spare {spare:.2%}, not 7 % ± 0.5")
        waf = self._waf("ext4")
        if waf is not None and waf < CONTROL_WAF_MIN:
            reasons.append(f"ext4: WAF {waf:.3f} < {CONTROL_WAF_MIN}: nothing to avoid")
        return reasons

    def missed(self) -> list[str]:
        """Return which targets were not reached."""
        found = []
        for outcome in self.outcomes:
            gap = self.gap_closed_from_off(outcome)
            if outcome.mode in ("learned", "hints") and gap is not None and gap < GAP_CLOSED_TARGET:
                found.append(f"{outcome.mode}: closes {gap:.0%} of the gap, wanted 60 %")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the whole report as plain values."""
        return {
            "schema": 1,
            "runs": [self._run_json(outcome) for outcome in self.outcomes],
            "oracle_waf": self.replays.oracle_waf if self.replays else None,
            "nosep_waf": self.replays.nosep_waf if self.replays else None,
            "sepgc_waf": self.replays.sepgc_waf if self.replays else None,
            "void": self.void(),
            "missed": self.missed(),
        }

    def _run_json(self, outcome: Outcome) -> dict[str, Any]:
        counters = outcome.counters
        return {
            "mode": outcome.mode,
            "waf": counters.waf,
            "nand_per_app_byte": outcome.nand_per_app_byte,
            "gap_closed_from_off": self.gap_closed_from_off(outcome),
            "gap_closed": self.gap_closed(outcome),
            "effective_spare": counters.effective_spare,
            "app_bytes": outcome.app_bytes,
            "device_bytes": counters.written_bytes,
            "nand_bytes": counters.nand_bytes,
            "gc_bytes": counters.gc_bytes,
            "p50_us": counters.p50_us,
            "p99_us": counters.p99_us,
            "p999_us": counters.p999_us,
            "meta_class": outcome.meta_class,
            "words_ratio": outcome.meta_words.ratio if outcome.meta_words else None,
            "vstreams": outcome.vstreams,
        }


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _words(outcome: Outcome) -> str:
    return "-" if outcome.meta_words is None else f"{outcome.meta_words.ratio:.2%}"


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.3f}"


Cell = Callable[[Report, Outcome], str]
ROWS: tuple[tuple[str, Cell], ...] = (
    ("application GiB", lambda _, o: _gib(o.app_bytes)),
    ("device GiB", lambda _, o: _gib(o.counters.written_bytes)),
    ("NAND GiB", lambda _, o: _gib(o.counters.nand_bytes)),
    ("[bold]NAND per application byte", lambda _, o: f"[bold]{o.nand_per_app_byte:.3f}"),
    ("GC copies, 4 KiB pages", lambda _, o: f"{o.counters.gc_bytes >> 12:,}"),
    ("WAF", lambda _, o: f"{o.counters.waf:.3f}"),
    ("write p50, µs, virtual clock", lambda _, o: f"{o.counters.p50_us:,.0f}"),
    ("write p99, µs", lambda _, o: f"{o.counters.p99_us:,.0f}"),
    ("write p99.9, µs", lambda _, o: f"{o.counters.p999_us:,.0f}"),
    ("gap closed from streams off", lambda r, o: _percent(r.gap_closed_from_off(o))),
    ("gap closed from nosep", lambda r, o: _percent(r.gap_closed(o))),
    ("effective spare", lambda _, o: f"{o.counters.effective_spare:.2%}"),
    ("META class", lambda _, o: o.meta_class),
    ("META words ÷ block words", lambda _, o: _words(o)),
)


def print_table(console: Console, report: Report) -> None:
    """Print one column a run and, below, what the runs are measured against."""
    table = Table(title="The same work of real programs, four times")
    table.add_column("counted rounds", no_wrap=True)
    for outcome in report.outcomes:
        table.add_column(TITLES[outcome.mode], justify="right")
    for name, cell in ROWS:
        table.add_row(name, *(cell(report, outcome) for outcome in report.outcomes))
    console.print(table)
    if report.replays:
        replays = report.replays
        console.print(
            f"The trace of streams off, replayed on the same device: WAF {replays.nosep_waf:.3f} "
            f"unseparated, {replays.sepgc_waf:.3f} with a GC frontier, "
            f"{replays.oracle_waf:.3f} by the oracle."
        )
    for reason in report.void():
        console.print(f"[bold red]Void:[/] {reason}")
    for miss in report.missed():
        console.print(f"[bold yellow]Missed:[/] {miss}")


def write_json(path: Path, report: Report) -> None:
    """Write the JSON file."""
    path.write_text(json.dumps(report.to_json(), indent=2) + "\n")


def draw(path: Path, report: Report) -> None:
    """Draw NAND bytes per application byte, and WAF beside the oracle's."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    names = [TITLES[outcome.mode] for outcome in report.outcomes]
    colours = ["#8c8c8c", "#c9a227", "#2a7f9e", "#1d9a6c"][: len(names)]
    for axes, values, title in (
        (left, [o.nand_per_app_byte for o in report.outcomes], "NAND bytes per application byte"),
        (right, [o.counters.waf for o in report.outcomes], "WAF (NAND ÷ device bytes)"),
    ):
        bars = axes.bar(names, values, color=colours, width=0.62)
        axes.bar_label(bars, fmt="%.3f", padding=2)
        axes.set_title(title)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(y=0.12)
    if report.replays:
        oracle = report.replays.oracle_waf
        right.axhline(oracle, color="#b03060", linestyle="--", linewidth=1)
        right.set_xlim(-0.5, len(names))
        right.text(len(names) - 0.05, oracle, "oracle", color="#b03060", ha="right", va="bottom")
    figure.suptitle("7 % effective spare, same work of the same programs")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
