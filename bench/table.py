"""The figures of a bench: rows with a value, its unit and its target; their table and picture."""

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.paths import ROOT
from bench.system import BenchError
from rich.console import Console
from rich.table import Table

COLOURS = {None: "tab:gray", True: "tab:green", False: "tab:orange"}


@dataclass(frozen=True)
class Target:
    """A value to reach: at most or at least ``value``."""

    value: float
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        """Whether ``value`` reaches the target."""
        return value >= self.value if self.at_least else value <= self.value

    def text(self) -> str:
        """Return it as it stands in tables and JSON."""
        return f"{'≥' if self.at_least else '≤'} {self.value:g}"


@dataclass(frozen=True)
class Row:
    """A figure. ``met`` is None where there is no target, ``value`` where none could be had."""

    name: str
    value: float | None
    unit: str
    target: str | None = None
    met: bool | None = None


def row(name: str, value: float, unit: str, target: Target | None = None) -> Row:
    """Hold a figure against its target, if it has one."""
    if target is None:
        return Row(name, value, unit)
    return Row(name, value, unit, target.text(), target.met_by(value))


def ratio(
    name: str, ours: Sequence[float], others: Sequence[float], target: Target | None = None
) -> Row:
    """Return the median of the rounds' ratios, and their spread."""
    ratios = [a / b for a, b in zip(ours, others, strict=True)]
    return row(name, statistics.median(ratios), f"{min(ratios):.2f} to {max(ratios):.2f}", target)


def unavailable(name: str, reason: str) -> Row:
    """Say why there is no figure."""
    return Row(name, None, reason)


def machine() -> dict[str, Any]:
    """Say what the figures were measured on."""
    cpu = platform.processor()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0))
    return {"cpu": cpu, "cores": cores, "memory_bytes": memory, "kernel": platform.release()}


def commit() -> str:
    """Name the commit measured; "+" marks changes that are not in it."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def to_json(bench: str, rows: list[Row]) -> dict[str, Any]:
    """Return a bench's figures as plain values."""
    values = [asdict(one) for one in rows]
    what = {"schema": 1, "bench": bench, "commit": commit(), "machine": machine()}
    today = datetime.now(tz=UTC).date().isoformat()
    command = shlex.join([f"bench/{bench}", *sys.argv[1:]])
    return what | {"date": today, "command": command, "rows": values}


def print_rows(console: Console, bench: str, rows: list[Row]) -> None:
    """Print the table; what misses its target stands out."""
    table = Table(title=bench)
    for title in ("", "value", "unit", "target", ""):
        table.add_column(title, justify="right" if title == "value" else "left")
    for one in rows:
        verdict = {None: "", True: "met", False: "[bold yellow]missed"}[one.met]
        value = "not measured" if one.value is None else f"{one.value:,.4g}"
        table.add_row(one.name, value, one.unit, one.target or "", verdict)
    console.print(table)


def drawn(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a picture shows: those with a target, and ratios."""
    return [one for one in rows if one.value and (one.target or "÷" in one.name)]


def draw(bench: str, rows: Sequence[Row], path: Path) -> None:
    """Draw one bar per row, orange if it misses its target, and a line per target.

    Raises OSError.
    """
    from matplotlib.figure import Figure  # slow to import, and seldom needed

    shown = drawn(rows)[::-1]  # the first on top
    figure = Figure(figsize=(11, 1.5 + 0.24 * len(shown)), layout="constrained")
    axes = figure.subplots()
    values = [one.value or 0.0 for one in shown]
    axes.barh(range(len(shown)), values, color=[COLOURS[one.met] for one in shown], left=0)
    for at, one in enumerate(shown):
        axes.text(one.value or 0.0, at, f" {one.value:.3g}", va="center", fontsize=7)
        if one.target:
            axes.plot([float(one.target.split()[1])] * 2, [at - 0.45, at + 0.45], color="black")
    axes.set_yticks(range(len(shown)), [one.name for one in shown], fontsize=7)
    axes.set(title=f"bench/{bench}: bars are figures, lines are targets", xscale="log")
    axes.margins(x=0.1, y=0.01)
    figure.savefig(path, dpi=110)


def main(bench: str, about: str, measure: Callable[[bool], list[Row]]) -> int:
    """Run a command line; ``measure`` is told whether to be quick. Returns an exit code."""
    parser = argparse.ArgumentParser(prog=f"bench/{bench}", description=about)
    parser.add_argument("--quick", action="store_true", help="less of it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--png", type=Path, metavar="FILE", help="also draw the figures here")
    options = parser.parse_args()
    try:
        rows = measure(options.quick)
    except BenchError as error:
        print(f"bench/{bench}: {error}", file=sys.stderr)
        return 1
    print_rows(Console(), bench, rows)
    if options.json:
        options.json.write_text(json.dumps(to_json(bench, rows), indent=2) + "\n")
    if options.png:
        draw(bench, rows, options.png)
    return 0
