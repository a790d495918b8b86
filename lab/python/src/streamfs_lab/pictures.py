"""Draws results of `ssd-sim` with matplotlib: `python -m streamfs_lab.pictures png|svg`.

Reads one JSON object from standard input and writes the picture to standard output. The object is
the answer of `ssd-sim reproduce --json` (key `figures`; the first one is drawn) or the cells of
`ssd-sim compare` (key `comparison`). Exit codes: 0 drawn, 64 wrong call, 69 no matplotlib.
"""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from classifierd.pictures import COLOURS, encoded, key_beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXIT_USAGE, EXIT_NO_MATPLOTLIB = 64, 69
_PAPER, _HERE = COLOURS[1], COLOURS[0]
_KEY_HEIGHT = 0.4  # inches
_LOG_RATIO = 50  # a wider range than this is drawn on a logarithmic axis

Json = dict[str, Any]


def figure_of(results: Json) -> Figure:
    """Draw what the results are: a published figure, or a comparison of policies."""
    if "figures" in results:
        return published(results["figures"][0])
    return comparison(results["comparison"])


def rounded(value: float) -> str:
    """Format with three digits, or with all digits before the point."""
    if value != 0 and abs(value) < 0.0995:
        return f"{value:.2g}"
    size = abs(value)
    return f"{value:,.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def published(result: Json) -> Figure:
    """Draw a published figure: its curves, and the paper's values beside ours by unit."""
    from matplotlib.figure import Figure

    units: dict[str, list[Json]] = {}
    for row in result["rows"]:
        units.setdefault(row["unit"], []).append(row)
    curves: dict[str, list[list[float]]] = result.get("curves", {})
    heights = [1.1 + 0.27 * len(rows) for rows in units.values()]
    if curves:
        heights.insert(0, 4.2)
    figure = Figure(figsize=(10, sum(heights) + 1.2), layout="constrained")
    title = "\n".join(textwrap.wrap(f"{result['name']}: {result['shows']}", 90))
    scale = f", devices of 1/{result['scale']} of its size" if result["scale"] > 1 else ""
    figure.suptitle(f"{title}\n{result['source']}{scale}", fontsize=11)
    heights.append(_KEY_HEIGHT)
    grid = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    *panels, key = grid[:, 0]
    at = 0
    if curves:
        _draw_curves(panels[0], curves, result["along"], result["height"])
        at = 1
    for axes, (unit, rows) in zip(panels[at:], units.items(), strict=True):
        _draw_rows(axes, unit, rows)
    _key_of_rows(key, result["rows"])
    return figure


def _by_number(label: str) -> list[tuple[float, str]]:
    """Sort key that puts "bursts of 5 %" before "bursts of 20 %"."""
    words = label.split()
    return [(float(each), "") if each.isdecimal() else (math.inf, each) for each in words]


def _draw_curves(
    axes: Axes, curves: dict[str, list[list[float]]], x_name: str, y_name: str
) -> None:
    for i, label in enumerate(sorted(curves, key=_by_number)):
        xs, ys = zip(*curves[label], strict=True)
        axes.plot(
            xs, ys, color=COLOURS[i % 8], marker="osD^vPX*"[i % 8], linestyle="-", label=label
        )
    axes.set(xlabel=x_name, ylabel=y_name)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.grid(visible=True, color="0.9")
    key_beside(axes, axes.get_legend_handles_labels()[0])


def _needs_log(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > _LOG_RATIO


def _range(row: Json) -> tuple[float, float]:
    """Least and most over seeds; of one run, the run."""
    return (row["least"], row["most"]) if row["seeds"] > 1 else (row["ours"], row["ours"])


def _draw_rows(axes: Axes, unit: str, rows: Sequence[Json]) -> None:
    """Draw a line for each row: ours with its range over seeds, and the paper's value."""
    notes = []
    for y, row in enumerate(rows):
        ours, paper = row["ours"], row["paper"]
        low, high = _range(row)
        error = [[ours - low], [high - ours]]
        axes.errorbar(ours, y, xerr=error, fmt="o", color=_HERE, capsize=4, zorder=3)
        if paper is not None:
            axes.plot(paper, y, "D", color=_PAPER, markerfacecolor="none", markersize=8)
        said = "" if paper is None else f" (paper {rounded(paper)})"
        notes.append(f"{rounded(ours)}{said}")
    values = [row["ours"] for row in rows]
    values += [row["paper"] for row in rows if row["paper"] is not None]
    if _needs_log(values):
        axes.set_xscale("log")
    elif min(values) >= 0:
        axes.set_xlim(left=0, right=max([*(_range(row)[1] for row in rows), *values]) * 1.06 or 1)
    else:
        axes.axvline(0, color="0.6", linewidth=1)
    axes.set_yticks(range(len(rows)), [textwrap.fill(row["label"], 60) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(unit or "ratio (no unit)")
    axes.grid(visible=True, axis="x", color="0.9")
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(rows)), notes)
    right.tick_params(length=0)


def _key_of_rows(axes: Axes, rows: Sequence[Json]) -> None:
    """Fill a panel of its own: matplotlib 3.6 has no place for a legend below all panels."""
    from matplotlib.lines import Line2D

    seeds = max((row["seeds"] for row in rows), default=1)
    here = f"here (mean and range over {seeds} seeds)" if seeds > 1 else "here (one run)"
    marks = [Line2D([], [], color=_HERE, marker="o", linestyle="none", label=here)]
    if any(row["paper"] is not None for row in rows):
        marks.append(
            Line2D([], [], color=_PAPER, marker="D", markerfacecolor="none", linestyle="none",
                   label="the paper's value")
        )  # fmt: skip
    axes.set_axis_off()
    axes.legend(handles=marks, loc="center", ncols=2, borderaxespad=0, fontsize=9)


def comparison(cells: Sequence[Json]) -> Figure:
    """Draw WAF as bars: a group for each workload and victim policy, a bar for each placement."""
    from matplotlib.figure import Figure

    placements = list(dict.fromkeys(cell["placement"] for cell in cells))
    groups = list(dict.fromkeys((cell["workload"], cell["victim"]) for cell in cells))
    step = len(placements) + 1
    width = max(7.0, 1.8 + 0.52 * step * len(groups))
    figure = Figure(figsize=(width, 4.8), layout="constrained")
    axes = figure.subplots()
    for cell in cells:
        place = placements.index(cell["placement"])
        x = groups.index((cell["workload"], cell["victim"])) * step + place
        bar = axes.bar(x, cell["waf"], width=0.9, color=COLOURS[place % 8])
        axes.bar_label(bar, [f"{cell['waf']:.2f}"], fontsize=8, padding=2)
    middles = [i * step + (len(placements) - 1) / 2 for i in range(len(groups))]
    axes.set_xticks(
        middles, [f"{textwrap.fill(load, 22)}\n{victim}" for load, victim in groups], fontsize=9
    )
    axes.set_xlabel("workload and victim policy")
    axes.set_ylabel("WAF (pages programmed ÷ pages written by the host)")
    axes.axhline(1, color="0.6", linewidth=1, linestyle="--")
    axes.margins(y=0.12)
    axes.set_xlim(-1, max(step * len(groups), 4) - 0.5)
    figure.suptitle(f"Write amplification by placement policy, {_spares(cells)}", fontsize=11)
    handles = [_swatch(COLOURS[i % 8], name) for i, name in enumerate(placements)]
    key_beside(axes, handles, "placement")
    return figure


def _spares(cells: Sequence[Json]) -> str:
    spares = [cell["effective_spare"] for cell in cells]
    low, high = min(spares), max(spares)
    same = math.isclose(low, high, abs_tol=0.005)
    return f"effective spare {low:.1%}" if same else f"effective spare {low:.1%} to {high:.1%}"


def _swatch(colour: str, name: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=colour, label=name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw standard input into standard output; returns the exit code."""
    wanted = list(sys.argv[1:] if arguments is None else arguments)
    if wanted not in (["png"], ["svg"]):
        sys.stderr.write("usage: python -m streamfs_lab.pictures png|svg <RESULTS.json >PICTURE\n")
        return EXIT_USAGE
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        sys.stderr.write(f"{sys.executable}: {error}\n")
        return EXIT_NO_MATPLOTLIB
    picture = encoded(figure_of(json.load(sys.stdin)), "png" if wanted == ["png"] else "svg")
    sys.stdout.buffer.write(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
