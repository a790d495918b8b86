"""A bench's figures as a picture: its ratios and what has a target, each beside that target."""

from collections.abc import Sequence
from pathlib import Path

from bench.table import Row

COLOURS = {None: "tab:gray", True: "tab:green", False: "tab:orange"}


def drawn(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a picture shows: those with a target, and ratios."""
    return [one for one in rows if one.value and (one.target or "÷" in one.name)]


def draw(bench: str, rows: Sequence[Row], path: Path) -> None:
    """Draw a bar a row, orange where it misses its target, which is a line. Raises OSError."""
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
