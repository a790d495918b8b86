"""The report of bench/apps: a table for each cell, a picture of them all."""

from collections.abc import Sequence
from pathlib import Path

from bench.applications.figures import FIGURES, NAND, Cell, Figure, missed, rows_of
from bench.applications.rows import WAYS
from rich.console import Console
from rich.table import Table

COLOURS = {
    "ext4": "#8c8c8c",
    "xfs": "#bdbdbd",
    "off": "#c9a227",
    "learned": "#2a7f9e",
    "hints": "#1d9a6c",
    "both": "#0d5c63",
}


def print_cell(console: Console, cell: Cell) -> None:
    """Print a cell's figures, a column a way: the mean, and the spread where there are more."""
    table = Table(title=cell.name)
    table.add_column("", no_wrap=True)
    for way in cell.runs:
        table.add_column(way, justify="right")
    for figure in FIGURES:
        table.add_row(figure.title, *(text(cell, way, figure) for way in cell.runs))
    table.add_row("seeds that count", *(counted(cell, way) for way in cell.runs))
    console.print(table)
    for each in cell.replays.values():
        console.print(
            f"replayed: {each.nosep_waf:.3f} unseparated, {each.sepgc_waf:.3f} with a GC frontier, "
            f"{each.oracle_waf:.3f} by the oracle"
        )
    for one in missed(list(rows_of(cell))):
        console.print(f"[bold yellow]missed:[/] {one.name}: {one.value:.3f}, wanted {one.target}")


def text(cell: Cell, way: str, figure: Figure) -> str:
    """Return a figure as it stands in the table."""
    values, mean = cell.values(way, figure), cell.mean(way, figure)
    if mean is None:
        return "-"
    said = f"{mean:.{figure.digits}f}"
    if len(values) > 1:
        said += f"\n{min(values):.{figure.digits}f}-{max(values):.{figure.digits}f}"
    return said


def counted(cell: Cell, way: str) -> str:
    """Return how many runs count, and how many are void."""
    void = f", {cell.voids(way)} void" if cell.voids(way) else ""
    failed = f", {cell.failed[way]} failed" if way in cell.failed else ""
    return f"{len(cell.valid(way))}{void}{failed}"


def draw(path: Path, cells: Sequence[Cell]) -> None:
    """Draw NAND bytes per application byte, a group of bars a cell."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    width = 0.8 / len(WAYS)
    size = (max(6.0, 1.6 * len(cells) + 2), 4.6)
    figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    for at, way in enumerate(WAYS):
        means = [cell.mean(way, NAND) or 0.0 for cell in cells]
        places = [number + at * width for number in range(len(cells))]
        lows = [m - min(c.values(way, NAND), default=m) for m, c in zip(means, cells, strict=True)]
        highs = [max(c.values(way, NAND), default=m) - m for m, c in zip(means, cells, strict=True)]
        axes.bar(places, means, width, label=way, color=COLOURS[way], yerr=(lows, highs))
    names = [cell.name.replace(", ", "\n") for cell in cells]
    axes.set_xticks([number + 0.4 - width / 2 for number in range(len(cells))], names, fontsize=8)
    axes.set_title("NAND bytes per application byte, 7 % effective spare")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=len(WAYS), fontsize=8)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
