"""Prometheus' metrics of mounted filesystems, read from their control sockets at each scrape.

Names follow its conventions: base units, `_total` for what only grows, `_info` for facts. A
filesystem that does not answer is `streamfs_up 0`, and the others are told all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from classifierd.control import ControlClient, socket_path
from classifierd.records import BLOCK_BYTES

Answer = Mapping[str, object]
_VSTREAMS_MAX = 64  # the most written ones; more would be more series than they are worth

# Name, help, and where in the status. Counters grow while the filesystem is mounted.
_COUNTERS = (
    ("application_written_bytes", "Bytes that programs wrote", ("app_bytes",)),
    ("never_written_bytes", "New data deleted before it was sent", ("never_written_bytes",)),
    ("device_written_bytes", "Bytes sent to the data device", ("device", "written_bytes")),
    ("device_read_bytes", "Bytes read from the data device", ("device", "read_bytes")),
    ("device_trimmed_bytes", "Bytes trimmed", ("device", "trimmed_bytes")),
    ("device_flushes", "Flushes sent to the data device", ("device", "flushes")),
    ("device_nand_written_bytes", "Bytes of NAND programmed", ("device", "nand_bytes")),
    ("device_gc_copied_bytes", "Bytes that garbage collection copied", ("device", "gc_bytes")),
    ("device_padding_bytes", "Bytes of NAND programmed to pad", ("device", "pad_bytes")),
    ("device_erases", "Blocks erased", ("device", "erases")),
    ("device_media_errors", "Reads of data that the device lost", ("device", "media_errors")),
    ("meta_fences", "Fences on META", ("meta", "fences")),
    ("meta_lines_flushed", "Cache lines of META flushed", ("meta", "lines_flushed")),
    ("meta_words_programmed", "Words of META programmed", ("meta", "words_programmed")),
    ("meta_syncs", "Times META was made durable", ("meta", "syncs")),
    ("meta_mended", "Damages in one copy of META that the other mended", ("meta", "mended")),
    ("journal_commits", "Records committed to the journal", ("meta", "commits")),
    ("meta_log_bytes", "Bytes of the metadata log on the data device", ("meta", "log_bytes")),
    ("intent_fsyncs", "Fsyncs made durable by the intent log", ("intent_log", "fsyncs")),
    (
        "intent_absorbed_bytes",
        "Bytes of fsyncs replaced before they were sent to the data device",
        ("intent_log", "absorbed_bytes"),
    ),
    ("epochs", "Device flushes that made data durable", ("epochs",)),
    ("checksum_errors", "Blocks whose checksum did not fit", ("checksum_errors",)),
    ("models_adopted", "Tables of the learning daemon taken over", ("model", "adoptions")),
    ("models_refused", "Tables of the learning daemon refused", ("model", "refused")),
    ("telemetry_records", "Records told to the daemon", ("model", "telemetry_records")),
    ("idle_periods", "Idle times that the device was left to", ("idle", "periods")),
    ("idle_copied_bytes", "Bytes that it copied in idle time", ("idle", "copied_bytes")),
)
_GAUGES = (
    ("pstreams", "Streams that the device has", ("pstreams",)),
    ("intent_log_bytes", "Size of the intent log in META", ("intent_log", "bytes")),
    ("intent_log_used_bytes", "Bytes of it in use", ("intent_log", "used_bytes")),
    ("inodes", "Files that fit", ("space", "inodes_possible")),
    ("inodes_free", "Files that still fit", ("space", "inodes_free")),
    ("dirty_inodes", "Files with data that is not durable yet", ("dirty_inodes",)),
    ("device_live_bytes", "Bytes of the device that hold data", ("device", "live_bytes")),
    ("device_effective_spare_ratio", "Physical ÷ peak live - 1", ("device", "effective_spare")),
    ("memory_anonymous_bytes", "Memory of the daemon's own", ("memory", "anonymous_bytes")),
    ("memory_mapped_bytes", "Mapped pages of META", ("memory", "mapped_bytes")),
    ("memory_cache_bytes", "What is remembered of unused files", ("memory", "cache_bytes")),
    ("memory_held_bytes", "New data that waits to be written", ("memory", "held_bytes")),
    ("model_generation", "The learning daemon's model in use", ("model", "generation")),
)
# These count blocks.
_BLOCK_GAUGES = (
    ("data_size_bytes", "Room for file data", ("space", "data_blocks")),
    ("data_free_bytes", "Room for file data that is free", ("space", "free_blocks")),
    ("trims_pending_bytes", "Freed and not trimmed yet", ("trims_pending_blocks",)),
)
_INFO = (
    "uuid",
    "label",
    "meta_class",
    "meta_trust",
    "meta_medium",
    "mirror",
    "placement",
    "device_kind",
    "device_mechanism",
)
_SHADOWS = tuple((name, f"nand_{name}_bytes") for name in ("off", "placed", "oracle"))
_LIMITS = (("low", "saved_low_bytes"), ("estimate", "saved_bytes"), ("high", "saved_high_bytes"))


def at(answer: object, path: tuple[str, ...]) -> object:
    """The value at a path of nested objects; None if there is none."""
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer


def number(told: object) -> float | None:
    """A figure that is one."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not math.isfinite(told):
        return None
    return float(told)


def rows(told: object) -> list[Answer]:
    """The objects of a list."""
    return [row for row in told if isinstance(row, dict)] if isinstance(told, list) else []


_Family = TypeVar("_Family", CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily)


class _Families:
    """Metric families by name, filled filesystem by filesystem."""

    def __init__(self) -> None:
        self._by_name: dict[str, Metric] = {}

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._by_name.values())

    def _family(
        self, kind: type[_Family], name: str, text: str, labels: Mapping[str, str]
    ) -> _Family:
        family = self._by_name.setdefault(name, kind(f"streamfs_{name}", text, labels=list(labels)))
        assert isinstance(family, kind)
        return family

    def counter(self, name: str, text: str, value: object, /, **labels: str) -> None:
        figure = number(value)
        if figure is not None and figure >= 0:
            family = self._family(CounterMetricFamily, name, text, labels)
            family.add_metric(list(labels.values()), figure)

    def gauge(self, name: str, text: str, value: object, /, **labels: str) -> None:
        figure = number(value)
        if figure is not None:
            family = self._family(GaugeMetricFamily, name, text, labels)
            family.add_metric(list(labels.values()), figure)

    def histogram(
        self, name: str, text: str, buckets: list[tuple[str, float]], total: float, /, **labels: str
    ) -> None:
        family = self._family(HistogramMetricFamily, name, text, labels)
        family.add_metric(list(labels.values()), buckets, total)


def histogram_of(op: Answer, bounds: list[float]) -> list[tuple[str, float]] | None:
    """Cumulative, by upper bound in seconds; None for what is none."""
    told = op.get("counts")
    counts = [number(each) for each in told] if isinstance(told, list) else []
    if len(counts) != len(bounds) + 1:
        return None
    below, out = 0.0, []
    for bound, count in zip([*bounds, math.inf], counts, strict=True):
        below += max(count or 0.0, 0.0)
        out.append(("+Inf" if math.isinf(bound) else repr(bound), below))
    return out


def bounds_of(metrics: Answer) -> list[float]:
    """Upper bounds of latency buckets, seconds."""
    told = metrics.get("bounds_us")
    bounds = [number(each) for each in told] if isinstance(told, list) else []
    return [bound / 1e6 for bound in bounds if bound is not None]


def _status(out: _Families, status: Answer, mount: str) -> None:
    for name, text, path in _COUNTERS:
        out.counter(name, text, at(status, path), mountpoint=mount)
    for name, text, path in _GAUGES:
        out.gauge(name, text, at(status, path), mountpoint=mount)
    for name, text, path in _BLOCK_GAUGES:
        blocks = number(at(status, path))
        out.gauge(name, text, None if blocks is None else blocks * BLOCK_BYTES, mountpoint=mount)
    if at(status, ("model", "adopted")) is True:
        kind = str(at(status, ("model", "kind")) or "")
        text = "The kind of the learning daemon's model in use"
        out.gauge("model_info", text, 1, mountpoint=mount, kind=kind)
    facts = {name: str(status.get(name, "")) for name in _INFO}
    out.gauge("filesystem_info", "What it is made of", 1, mountpoint=mount, **facts)
    out.gauge(
        "read_only",
        "Whether an error made it read-only",
        int(status.get("degraded_read_only") is True),
        mountpoint=mount,
    )
    for row in rows(at(status, ("device", "streams"))):
        stream = {"mountpoint": mount, "pstream": str(row.get("stream", ""))}
        written, copied = row.get("written_bytes"), row.get("gc_bytes")
        out.counter("stream_written_bytes", "Bytes sent to a pStream", written, **stream)
        out.counter("stream_gc_copied_bytes", "Bytes copied into a pStream", copied, **stream)


def _saved(out: _Families, status: Answer, mount: str) -> None:
    for shadow, key in _SHADOWS:
        out.counter(
            "shadow_nand_written_bytes",
            "Bytes of NAND a shadow of the device programmed: without streams (off), as placed, "
            "with deaths known (oracle)",
            at(status, ("saved", "all", key)),
            mountpoint=mount,
            streams=shadow,
        )
    text = "Bytes sent to the shadow devices, scaled to the whole device"
    sent = at(status, ("saved", "all", "written_bytes"))
    out.counter("shadow_written_bytes", text, sent, mountpoint=mount)
    for period in ("all", "month"):
        for limit, key in _LIMITS:
            out.gauge(
                "saved_nand_bytes",
                "Bytes of NAND that streams saved, since the first daemon or this month, with "
                "95 % limits",
                at(status, ("saved", period, key)),
                mountpoint=mount,
                period=period,
                limit=limit,
            )


def _streams(out: _Families, streams: Answer, mount: str) -> None:
    def written(row: Answer) -> float:
        return number(row.get("written_bytes")) or 0.0

    for row in sorted(rows(streams.get("streams")), key=written)[-_VSTREAMS_MAX:]:
        stream = {"mountpoint": mount, "vstream": str(row.get("vstream", ""))}
        stream |= {key: str(row.get(key, "")) for key in ("source", "name")}
        out.counter("vstream_written_bytes", "Bytes written", row.get("written_bytes"), **stream)
        out.gauge("vstream_live_bytes", "Bytes that live", row.get("live_bytes"), **stream)
        lifetime = number(row.get("lifetime_bytes")) or None
        text = "Bytes written to the device in a byte's life"
        out.gauge("vstream_lifetime_bytes", text, lifetime, **stream)
        out.gauge("vstream_pstream", "Where it is placed", row.get("pstream"), **stream)


def _ops(out: _Families, metrics: Answer, mount: str) -> None:
    version = str(metrics.get("version", ""))
    out.gauge("build_info", "The filesystem's version", 1, mountpoint=mount, version=version)
    bounds = bounds_of(metrics)
    for op in rows(metrics.get("ops")):
        buckets = histogram_of(op, bounds)
        if buckets is None:
            continue
        out.histogram(
            "op_duration_seconds",
            "How long requests took, by operation",
            buckets,
            (number(op.get("sum_ns")) or 0.0) / 1e9,
            mountpoint=mount,
            op=str(op.get("op", "")),
        )


def ask(mountpoint: Path) -> tuple[Answer, Answer, Answer]:
    """Status, streams and metrics of one. Raises ControlError."""
    with ControlClient(socket_path(mountpoint)) as client:
        status, metrics = (client.request(op)[0] for op in ("status", "metrics"))
        # Anyone may read metrics, so they have no names of files and programs.
        streams, _ = client.request("streams", names="built-in")
        return status, streams, metrics


class Filesystems(Collector):
    """The filesystems mounted at these places, asked anew at each collection."""

    def __init__(self, mountpoints: list[Path]) -> None:
        self._mountpoints = list(dict.fromkeys(mountpoints))  # one named twice is one

    def collect(self) -> Iterator[Metric]:
        """Ask all of them."""
        out = _Families()
        for mountpoint in self._mountpoints:
            mount = str(mountpoint)
            try:
                status, streams, metrics = ask(mountpoint)
            except OSError:
                out.gauge("up", "Whether it answers", 0, mountpoint=mount)
                continue
            out.gauge("up", "Whether it answers", 1, mountpoint=mount)
            _status(out, status, mount)
            _saved(out, status, mount)
            _streams(out, streams, mount)
            _ops(out, metrics, mount)
        yield from out
