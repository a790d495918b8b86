"""A page about a mounted filesystem: no scripts, nothing fetched, light and dark.

Everything comes from the control socket: what it is told now, and the moments that the daemon
told of (without a daemon there are none, and the page says so).
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from pathlib import Path

from classifierd.charts import Bar, Dots, Line, bars, binary_bytes, dots, legend, lines, seconds
from classifierd.control import ControlClient, socket_path
from classifierd.metrics import Answer, at, number, rows
from classifierd.records import BLOCK_BYTES

_VSTREAMS_SHOWN = 16
_COLOURS = 8
_QUANTILES = ((0.5, 1), (0.9, 2), (0.99, 3), (0.999, 4))
_SPANS_MAX = 96  # moments are joined until there are no more stretches than this

_STYLE = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#59636f;
--rule:#dde2e8;--c1:#0b62b8;--c2:#c2410c;--c3:#0f7b5f;--c4:#7a3db8;--c5:#9a6a00;--c6:#b0216e;--c7:#2c7f93;--c8:#5d6b7c}
@media(prefers-color-scheme:dark){:root{--page:#11161d;--card:#1a212b;--ink:#e7ecf2;--soft:#a3afbd;
--rule:#323d4a;--c1:#6db3f8;--c2:#ff9a5c;--c3:#4ecfa5;--c4:#c59bff;--c5:#e6b84a;--c6:#ff86c0;
--c7:#72cde0;--c8:#a9b7c6}}
*{box-sizing:border-box}
body{margin:0;padding:24px;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,"DejaVu Sans",sans-serif}
main{max-width:1560px;margin:auto}
h1{font-size:24px;margin:0}h2{font-size:17px;margin:0 0 2px}
.soft,.note{color:var(--soft)}.note{margin:0 0 8px;font-size:14px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));gap:12px;margin:18px 0}
.tile,section{background:var(--card);border:1px solid var(--rule);border-radius:8px;
padding:14px 16px}
.tile b{display:block;font-size:24px;line-height:1.25}
.tile span{color:var(--soft);font-size:13px}
section{margin-bottom:16px}
.columns{columns:2 480px;column-gap:16px;margin-bottom:16px}.columns section{break-inside:avoid}
svg{display:block;width:100%;height:auto}
svg text{font-size:13px;fill:var(--ink)}svg .grid{stroke:var(--rule)}
svg .span{stroke:var(--soft);stroke-width:2}
.legend{margin:4px 0 2px;display:flex;flex-wrap:wrap;gap:4px 18px;font-size:14px}
.legend span{display:flex;align-items:center;gap:6px}
.key{height:10px;width:auto;flex:none}
.none{color:var(--soft);padding:24px 0}
.bad{color:var(--c2)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{text-align:left;padding:5px 10px;border-bottom:1px solid var(--rule);white-space:nowrap}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.dot{display:inline-block;width:10px;height:10px;border-radius:50%;margin-right:7px}
"""


def colour_of(pstream: object) -> int:
    """The colour's slot of a pStream; from the ninth on they come again."""
    return 1 + (int(number(pstream) or 0) % _COLOURS)


def quantile(buckets: Sequence[Sequence[float]], share: float) -> float:
    """Middle of the bucket, (above, up to, count), that has the value at rank ceil(share * all)."""
    wanted, seen, middle = math.ceil(share * sum(count for _, _, count in buckets)), 0.0, 0.0
    for above, up_to, count in buckets:
        seen, middle = seen + count, (above + 1 + up_to) / 2
        if seen >= wanted:
            break
    return middle


def _section(title: str, note: str, body: str) -> str:
    return f'<section><h2>{title}</h2><p class="note">{note}</p>{body}</section>'


def _clock(span_seconds: float) -> str:
    if span_seconds < 300:
        return "%H:%M:%S"
    return "%H:%M" if span_seconds < 86_400 else "%m-%d %H:%M"


def _waf_lines(moments: Sequence[Sequence[float]]) -> list[Line]:
    """Programmed ÷ sent in each stretch between moments; None where nothing was written."""
    step = max(1, -(-len(moments) // _SPANS_MAX))
    kept = moments[::step]
    # Name, colour, what is programmed and what is sent: columns of a moment.
    wanted = (
        ("measured by the device", 1, 6, 5),
        ("shadow: streams off", 2, 2, 1),
        ("shadow: as placed", 3, 3, 1),
        ("shadow: deaths known", 4, 4, 1),
    )
    out = []
    for name, colour, above, below in wanted:
        points: list[tuple[float, float | None]] = []
        # Where next to nothing was sent, one block collected more or less makes a spike.
        least = (kept[-1][below] - kept[0][below]) / 200 if kept else 0.0
        for early, late in pairwise(kept):
            sent = late[below] - early[below]
            made = late[above] - early[above]
            good = sent > least and made >= 0 and late[above] > 0
            points.append((late[0] / 1000, made / sent if good else None))
        if any(y is not None for _, y in points):
            out.append(Line(name, colour, points))
    return out


def waf_over_time(history: object) -> str:
    """The section on WAF."""
    told = history if isinstance(history, list) else []
    moments = [
        [number(each) or 0.0 for each in row]
        for row in told
        if isinstance(row, list) and len(row) == 7
    ]
    span = moments[-1][0] - moments[0][0] if moments else 0.0
    pattern = _clock(span / 1000)
    chart = lines(
        "Write amplification over time",
        _waf_lines(moments),
        "WAF (NAND ÷ sent)",
        lambda x: datetime.fromtimestamp(x, UTC).strftime(pattern),
        lambda y: f"{y:.4g}",
    )
    note = (
        "Bytes programmed ÷ bytes sent, between moments the daemon told of. A shadow is a small "
        "copy of the SSD without data, which sees a sample of the writes; the one that knows "
        "deaths is a deviceful of writes behind."
    )
    return _section("Write amplification over time", note, chart)


def _pstreams(status: Answer) -> str:
    told = rows(at(status, ("device", "streams")))
    made = []
    for row in told:
        written, copied = number(row.get("written_bytes")), number(row.get("gc_bytes"))
        if written or copied:
            note = binary_bytes((written or 0.0) + (copied or 0.0))
            name = f"pStream {row.get('stream')}"
            made.append(Bar(name, [(written or 0.0, 1), (copied or 0.0, 2)], note))
    key = legend([("written by the host", 1), ("copied by garbage collection", 2)])
    chart = key + bars("Bytes by pStream", made, "bytes since the device was made", binary_bytes)
    return _section("Bytes by stream of the device", "Copies are what streams are to save.", chart)


def _origin(row: Answer) -> str:
    parts = [str(row.get(key, "")) for key in ("name", "comm", "ext", "dir")]
    return " ".join(part for part in parts if part) or str(row.get("source", ""))


def _most_written(streams: Answer) -> list[Answer]:
    told = rows(streams.get("streams"))
    told.sort(key=lambda row: number(row.get("written_bytes")) or 0.0, reverse=True)
    return told[:_VSTREAMS_SHOWN]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _lifetimes(streams: Answer) -> str:
    made, used = [], set()
    for row in _most_written(streams):
        life = number(row.get("lifetime_bytes")) or 0.0
        low, high = (number(row.get(f"lifetime_{end}_bytes")) or 0.0 for end in ("low", "high"))
        if life <= 0:
            continue
        span = (low, high) if 0 < low <= high else None
        used.add(int(number(row.get("pstream")) or 0))
        name = _short(_origin(row), 24)
        made.append(Dots(name, [(life, colour_of(row.get("pstream")))], span, binary_bytes(life)))
    key = legend([(f"pStream {each}", colour_of(each)) for each in sorted(used)])
    label = "bytes written to the device in a byte's life (lines: 95 % limits)"
    chart = key + dots("Lifetimes", made, label, binary_bytes, base=4)
    note = "Measured, of the vStreams written most; the colour is the pStream they go to."
    return _section("Lifetimes", note, chart)


def _trim(status: Answer) -> str:
    device = ("device",)
    pending = (number(status.get("trims_pending_blocks")) or 0.0) * BLOCK_BYTES
    made = []
    for name, value, colour in (
        ("written", number(at(status, (*device, "written_bytes"))), 1),
        ("trimmed", number(at(status, (*device, "trimmed_bytes"))), 3),
        ("trims pending", pending, 5),
        ("live", number(at(status, (*device, "live_bytes"))), 4),
    ):
        if value is not None:
            made.append(Bar(name, [(value, colour)], binary_bytes(value)))
    chart = bars(
        "Trim", made, "bytes since the device was made; live and pending: now", binary_bytes
    )
    note = "What is trimmed need not be copied. Pending: freed, not told to the device yet."
    return _section("Trim", note, chart)


def _buckets(op: Answer) -> list[list[float]]:
    """Return the buckets of an operation that have a count; leave out whatever is malformed."""
    told = op.get("buckets")
    read = [each for each in told if isinstance(each, list)] if isinstance(told, list) else []
    figures = [[number(figure) or 0.0 for figure in each] for each in read if len(each) == 3]
    return [each for each in figures if each[2] > 0]


def _latencies(metrics: Answer) -> str:
    made = []
    for op in rows(metrics.get("ops")):
        buckets = _buckets(op)
        if not buckets:
            continue
        points = [(quantile(buckets, share) / 1e9, colour) for share, colour in _QUANTILES]
        span = (points[0][0], points[-1][0])
        made.append(
            Dots(str(op.get("op")), points, span, f"{sum(each[2] for each in buckets):,.0f}")
        )
    key = legend([(f"p{share * 100:g}", colour) for share, colour in _QUANTILES])
    label = "time from request to answer in the filesystem (right: how many)"
    chart = key + dots("Latency percentiles", made, label, seconds)
    note = "Since the mount, with two significant digits, without the time in the kernel's queue."
    return _section("Latency percentiles", note, chart)


def _decided(status: Answer, streams: Answer) -> str:
    head = "<tr><th>vStream</th><th>made by</th><th>of</th>" + "".join(
        f'<th class="n">{each}</th>' for each in ("written", "live", "lifetime", "95 % limits")
    )
    body = []
    for row in _most_written(streams):
        life, low, high, written, live = (
            number(row.get(f"{key}_bytes")) or 0.0
            for key in ("lifetime", "lifetime_low", "lifetime_high", "written", "live")
        )
        limits = f"{binary_bytes(low)} - {binary_bytes(high)}" if high else ""
        figures = (
            binary_bytes(written),
            binary_bytes(live),
            binary_bytes(life) if life else "not known",
        )
        cells = "".join(f'<td class="n">{each}</td>' for each in (*figures, limits))
        dot = f'<i class="dot" style="background:var(--c{colour_of(row.get("pstream"))})"></i>'
        body.append(
            f"<tr><td>{escape(str(row.get('vstream')))}</td><td>{escape(str(row.get('source')))}"
            f"</td><td>{escape(_short(_origin(row), 48))}</td>{cells}"
            f"<td>{dot}{escape(str(row.get('pstream')))}</td></tr>"
        )
    table = f'<div class="scroll"><table>{head}<th>pStream</th></tr>{"".join(body)}</table></div>'
    generation = number(at(status, ("model", "generation"))) or 0.0
    refused = number(at(status, ("model", "refused"))) or 0.0
    stored = ", from its state directory," if at(status, ("model", "stored")) is True else ""
    note = (
        f"Placement {escape(str(status.get('placement')))}. "
        f"Table {generation:.0f} of the daemon{stored} is in use, {refused:.0f} were refused. "
        "Where a write goes also depends on its place in the request and on the age of what it "
        "overwrites; shown is a new write."
    )
    return _section("What the classifier decided", note, table)


def _tile(value: str, name: str) -> str:
    return f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'


def _saved_tile(status: Answer) -> str:
    month = at(status, ("saved", "month"))
    if not isinstance(month, dict):
        return _tile("not known", "NAND saved by streams: no daemon has told")
    saved, low, high = (
        number(month.get(key)) or 0.0
        for key in ("saved_bytes", "saved_low_bytes", "saved_high_bytes")
    )
    sampled = number(at(status, ("saved", "one_in"))) or 1.0
    how = "all followed" if sampled == 1 else f"{binary_bytes(low)} to {binary_bytes(high)}"
    return _tile(binary_bytes(saved), f"NAND saved by streams this month ({how})")


def _tiles(status: Answer) -> str:
    def ratio(*path: str) -> str:
        told = number(at(status, path))
        return "not told" if told is None else f"{told:.3f}"

    size, free = (
        (number(at(status, ("space", f"{key}_blocks"))) or 0.0) * BLOCK_BYTES
        for key in ("data", "free")
    )
    errors = number(status.get("checksum_errors")) or 0.0
    made = [
        _saved_tile(status),
        _tile(ratio("nand_per_app_byte"), "NAND bytes per application byte"),
        _tile(ratio("device", "waf"), "WAF of the device"),
        _tile(binary_bytes(number(status.get("app_bytes")) or 0.0), "written by applications"),
        _tile(f"{binary_bytes(size - free)} of {binary_bytes(size)}", "of data in use"),
        _tile(f"{errors:.0f}", "checksum errors"),
    ]
    return f'<div class="tiles">{"".join(made)}</div>'


def page(
    mountpoint: str,
    status: Answer,
    streams: Answer,
    metrics: Answer,
    history: object,
    now: datetime,
) -> str:
    """The page, whole."""
    name = str(status.get("label") or "") or mountpoint
    broken = ""
    if status.get("degraded_read_only") is True:
        broken = (
            f'<p class="bad"><b>READ-ONLY</b>: {escape(str(status.get("degraded_reason")))}</p>'
        )
    log_bytes = number(at(status, ("intent_log", "bytes"))) or 0.0
    log = f"intent log of {binary_bytes(log_bytes)}" if log_bytes > 0 else "no intent log"
    meta = f"META {status.get('meta_class')} ({status.get('meta_trust')})"
    facts = (
        f"{mountpoint} · {status.get('uuid')} · {meta} · "
        f"{log} · "
        f"{status.get('device_kind')} device, {status.get('pstreams')} pStreams · "
        f"streamfs {metrics.get('version')} · {now:%Y-%m-%d %H:%M} UTC"
    )
    columns = [_pstreams(status), _lifetimes(streams), _latencies(metrics), _trim(status)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>streamfs: {escape(name)}</title><style>{_STYLE}</style></head><body><main>"
        f'<h1>{escape(name)}</h1><p class="soft">{escape(facts)}</p>{broken}{_tiles(status)}'
        f'{waf_over_time(history)}<div class="columns">{"".join(columns)}</div>'
        f"{_decided(status, streams)}</main></body></html>\n"
    )


def write(mountpoint: Path, path: Path) -> None:
    """Ask the filesystem and write the page. Raises OSError."""
    with ControlClient(socket_path(mountpoint)) as client:
        status, streams, metrics, savings = (
            client.request(op)[0] for op in ("status", "streams", "metrics", "savings")
        )
    text = page(
        str(mountpoint), status, streams, metrics, savings.get("history"), datetime.now(UTC)
    )
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
