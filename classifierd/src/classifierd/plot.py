"""A picture of the lifetimes that a mounted filesystem measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from classifierd.charts import binary_bytes
from classifierd.pictures import COLOURS, encoded, key_beside, kind_of

_VSTREAMS_SHOWN = 30


@dataclass(frozen=True)
class Measured:
    """A vStream of a mounted filesystem, in bytes written in between."""

    label: str
    pstream: int
    lifetime: float
    low: float
    high: float
    written: float


def measured(rows: object) -> list[Measured]:
    """The 30 vStreams that wrote most, of those with a known lifetime, short-lived first."""
    found = []
    for row in rows if isinstance(rows, list) else []:
        numbers = [row.get(f"lifetime_{key}bytes") for key in ("", "low_", "high_")]
        if all(isinstance(number, int) and number > 0 for number in numbers):
            what = row.get("name") or " ".join(
                str(row[key]) for key in ("comm", "dir", "ext") if row.get(key)
            )
            label = f"{row.get('vstream')} {what}"[:40]
            written = float(row.get("written_bytes") or 0)
            life, low, high = map(float, numbers)
            pstream = int(row.get("pstream", 0))
            found.append(Measured(label, pstream, life, low, high, written))
    largest = sorted(found, key=lambda each: each.written, reverse=True)[:_VSTREAMS_SHOWN]
    return sorted(largest, key=lambda each: each.lifetime)


def draw_measured(found: Sequence[Measured], path: Path, title: str) -> None:
    """Draw vStreams' lifetimes and limits, coloured by pStream. Raises OSError, ImportError."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(10, 2.4 + 0.25 * len(found)), layout="constrained")
    axes = figure.subplots()
    for at, each in enumerate(found):
        colour = COLOURS[each.pstream % 8]
        axes.hlines(at, each.low, each.high, color=colour)
        axes.plot(each.lifetime, at, "o", color=colour)
    axes.set_yticks(range(len(found)), [each.label for each in found])
    axes.set_xscale("log", base=2)
    axes.set_ylim(-0.6, len(found) - 0.4)
    axes.xaxis.set_major_formatter(lambda value, _: binary_bytes(value))
    axes.grid(visible=True, axis="x", color="0.9")
    figure.suptitle(f"{title}, {len(found)} largest vStreams")
    axes.set(
        xlabel="lifetime (bytes written to the filesystem in between; line: 95 % confidence)",
        ylabel="vStream: number and name",
    )
    used = sorted({each.pstream for each in found})
    keys = [Line2D([], [], color=COLOURS[each % 8], marker="o", label=str(each)) for each in used]
    key_beside(axes, keys, "pStream")
    path.write_bytes(encoded(figure, kind_of(path)))
