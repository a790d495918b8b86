"""Small SVG charts for pages without scripts: colours are the page's CSS variables, so that one
picture serves light and dark.

Colours are named by slot, --c1 to --c8; text takes the page's. Every chart says its units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, WIDE = 720, 1440
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 16, 14, 44
_ROW = 24
# Lines are drawn widest first, so that all show where they coincide.
_WIDTHS = (10, 6.5, 3.5, 1.2)
_POWERS_MAX = 6  # on an axis; of more, every second is shown
_CHAR = 7.6  # width of a letter of a label, at most

Format = Callable[[float], str]


@dataclass(frozen=True)
class Line:
    """A series over time; gaps are None."""

    name: str
    colour: int
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True)
class Bar:
    """A row of parts laid end to end; each is a value and its colour's slot."""

    name: str
    parts: Sequence[tuple[float, int]]
    note: str


@dataclass(frozen=True)
class Dots:
    """A row of dots on a logarithmic axis, with a line from the first of `span` to the last."""

    name: str
    dots: Sequence[tuple[float, int]]
    span: tuple[float, float] | None
    note: str = ""


def binary_bytes(value: float) -> str:
    """Format in binary units with at most three digits: "1.5 GiB"."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(value) < 999.5 or unit == "PiB":
            text = f"{value:.0f}" if abs(value) >= 99.5 else f"{value:.1f}".removesuffix(".0")
            return f"{text} {unit}"
        value /= 1024
    return ""


def seconds(value: float) -> str:
    """Microseconds to seconds."""
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.0f} s"


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "label") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _svg(height: float, title: str, body: Sequence[str], width: int = WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(title, True)}">'
        + "".join(body)
        + "</svg>"
    )


def legend(names: Sequence[tuple[str, int]], *, of_lines: bool = False) -> str:
    """Names beside their colours."""
    keys = []
    for name, colour in names:
        mark = (
            f'<svg class="key" viewBox="0 0 24 10"><line x1="1" y1="5" x2="23" y2="5" '
            f'style="stroke:var(--c{colour})" stroke-width="{_WIDTHS[(colour - 1) % 4]}"/></svg>'
            if of_lines
            else f'<svg class="key" viewBox="0 0 10 10"><rect width="10" height="10" rx="2" '
            f'style="fill:var(--c{colour})"/></svg>'
        )
        keys.append(f"<span>{mark}{escape(name)}</span>")
    return f'<p class="legend">{"".join(keys)}</p>'


def _margin(texts: Iterable[str]) -> int:
    """Room beside a plot for the longest of these labels, and for half a label of the axis."""
    return max(40, 20 + math.ceil(_CHAR * max((len(text) for text in texts), default=0)))


def byte_ticks(most: float) -> list[float]:
    """Round numbers of binary bytes that cover [0, most]."""
    unit = 1024.0 ** max(0, math.floor(math.log(most, 1024)))
    return [tick * unit for tick in nice_ticks(0.0, most / unit)]


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover [low, high]."""
    if not high > low:
        high = low + (abs(low) or 1.0)
    raw = (high - low) / count
    step = 10.0 ** math.floor(math.log10(raw))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if step * factor >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    return [step * i for i in range(first, math.ceil(high / step - 1e-9) + 1)]


def lines(title: str, series: Sequence[Line], y_label: str, x_text: Format, y_text: Format) -> str:
    """Lines over time. The y axis spans at least a tenth of its lowest value: noise looks small."""
    xs = [x for line in series for x, _ in line.points]
    ys = [y for line in series for _, y in line.points if y is not None]
    if not ys or max(xs) <= min(xs):
        return '<p class="none">Too little was written, or for too short a time, to draw this.</p>'
    height = 280.0
    ticks = nice_ticks(min(ys), max(max(ys), min(ys) + 0.1 * abs(min(ys))))
    low, high, begin, end = ticks[0], ticks[-1], min(xs), max(xs)

    def at_x(x: float) -> float:
        return _LEFT + (x - begin) / (end - begin) * (WIDE - _LEFT - _RIGHT)

    def at_y(y: float) -> float:
        return height - _BOTTOM - (y - low) / (high - low) * (height - _TOP - _BOTTOM)

    out = []
    for tick in ticks:
        y = at_y(tick)
        out.append(
            f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{WIDE - _RIGHT}" y2="{y:.1f}"/>'
        )
        out.append(_text(_LEFT - 8, y + 4, y_text(tick), "end"))
    for i in range(5):
        x = begin + (end - begin) * i / 4
        anchor = ("start", "middle", "middle", "middle", "end")[i]
        out.append(_text(at_x(x), height - _BOTTOM + 18, x_text(x), anchor))
    middle = (height - _BOTTOM + _TOP) / 2
    out.append(
        f'<text class="label" transform="translate(14 {middle:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_label)}</text>'
    )
    out.append(_text((_LEFT + WIDE - _RIGHT) / 2, height - 6, "time (UTC)", "middle"))
    for line in series:
        path, pen = [], "M"
        for moment, value in line.points:
            if value is None:
                pen = "M"
                continue
            path.append(f"{pen}{at_x(moment):.1f} {at_y(value):.1f}")
            pen = "L"
        out.append(
            f'<path d="{"".join(path)}" fill="none" style="stroke:var(--c{line.colour})" '
            f'stroke-width="{_WIDTHS[(line.colour - 1) % 4]}"/>'
        )
    return legend([(line.name, line.colour) for line in series], of_lines=True) + _svg(
        height, title, out, WIDE
    )


def bars(title: str, rows: Sequence[Bar], x_label: str, x_text: Format) -> str:
    """Rows of bars of bytes, from zero."""
    most = max((sum(value for value, _ in row.parts) for row in rows), default=0.0)
    if most <= 0:
        return '<p class="none">Nothing was counted yet.</p>'
    ticks = byte_ticks(most)
    left, right = _margin(row.name for row in rows), _margin(row.note for row in rows)
    scale = (WIDTH - left - right) / ticks[-1]
    height = _ROW * len(rows) + _TOP + _BOTTOM
    out = []
    for tick in ticks:
        x = left + tick * scale
        out.append(
            f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{height - _BOTTOM}"/>'
        )
        out.append(_text(x, height - _BOTTOM + 18, x_text(tick), "middle"))
    out.append(_text(left + (WIDTH - left - right) / 2, height - 6, x_label, "middle"))
    for i, row in enumerate(rows):
        y, x = _TOP + i * _ROW, float(left)
        out.append(_text(left - 8, y + 16, row.name, "end"))
        for value, colour in row.parts:
            out.append(
                f'<rect x="{x:.1f}" y="{y + 4}" width="{max(value * scale, 0):.1f}" '
                f'height="{_ROW - 8}" rx="2" style="fill:var(--c{colour})"/>'
            )
            x += value * scale
        out.append(_text(x + 6, y + 16, row.note))
    return _svg(height, title, out)


def dots(title: str, rows: Sequence[Dots], x_label: str, x_text: Format, base: int = 10) -> str:
    """Rows of dots on one logarithmic axis with a tick at powers of the base."""
    values = [value for row in rows for value, _ in row.dots]
    values += [value for row in rows for value in row.span or ()]
    values = [value for value in values if value > 0]
    if not values:
        return '<p class="none">Nothing was measured yet.</p>'
    while math.log(max(values) / min(values), base) > _POWERS_MAX:
        base *= base
    low, high = math.floor(math.log(min(values), base)), math.ceil(math.log(max(values), base))
    high = max(high, low + 1)
    left, right = _margin(row.name for row in rows), _margin(row.note for row in rows)
    height = _ROW * len(rows) + _TOP + _BOTTOM

    def at_x(value: float) -> float:
        share = (math.log(max(value, float(base) ** low), base) - low) / (high - low)
        return left + share * (WIDTH - left - right)

    out = []
    for power in range(low, high + 1):
        x = at_x(float(base) ** power)
        out.append(
            f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{height - _BOTTOM}"/>'
        )
        out.append(_text(x, height - _BOTTOM + 18, x_text(float(base) ** power), "middle"))
    out.append(_text(left + (WIDTH - left - right) / 2, height - 6, x_label, "middle"))
    for i, row in enumerate(rows):
        y = _TOP + i * _ROW + _ROW / 2
        out.append(_text(left - 8, y + 4, row.name, "end"))
        if row.span is not None:
            x1, x2 = (at_x(value) for value in row.span)
            out.append(
                f'<line class="span" x1="{x1:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y:.1f}"/>'
            )
        for value, colour in row.dots:
            out.append(
                f'<circle cx="{at_x(value):.1f}" cy="{y:.1f}" r="5" style="fill:var(--c{colour})"/>'
            )
        out.append(_text(WIDTH - right + 10, y + 4, row.note))
    return _svg(height, title, out)
