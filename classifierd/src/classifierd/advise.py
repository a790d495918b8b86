"""The saving of streams here: NAND bytes and a drive's years predicted from a recorded trace.

For each model of SSD, made as large as the device recorded and filled as far: what it programs for
the trace as it is; for the same data on streamfs without streams (its metadata goes to META, so a
file system's log and what it says is metadata is left out, and streamfs's own log comes in) and
with streams as learned; and with all deaths known, which is the most that placement could do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.choice import Tags
from classifierd.contest import CANDIDATES, Contest, Device
from classifierd.contexts import VStream
from classifierd.learner import Settings, epoch_pages_for
from classifierd.records import (
    BLOCK_BYTES,
    KIND_TRIM,
    RECORD,
    Ints,
    Records,
    pages_one_by_one,
)
from classifierd.requests import Requests
from classifierd.savings import sampling
from classifierd.traces import telemetry

YEAR_SECONDS = 365.25 * 86_400
_BLOCKS_MIN = 512  # of a device that is simulated smaller than its model
_BLOCK_PAGES_MIN = 32
_RESERVE_BLOCKS = 12  # beside the spare, as ssd-sim's (ssd/geometry.h)
# streamfs's log on DATA (fuse-fs/meta/label.cc): a share of it, in bounds.
_LOG_SHARE, _LOG_PAGES_MIN, _LOG_PAGES_MAX = 64, 1024, 16384
_LOG_LEAST_PAGES, _DATA_OF_META = 128, 1500  # the latter as bench/advise's files need it
LEAST_PAGES, MOST_PAGES = _LOG_PAGES_MIN + 64, 1 << 34  # of an SSD that something is said of


@dataclass(frozen=True)
class Model:
    """An SSD to predict for: ssd-sim's presets, and the cycles that such cells are rated for."""

    name: str
    capacity_bytes: int
    pstreams: int
    block_pages: int  # erased together, 4 KiB each
    gc_mode: str
    cycles: int  # programmed and erased; a typical rating of the cells, no drive's promise
    spare: float = 0.07


MODELS = (
    Model("embedded-slc", 4 << 30, 4, 1024, "own", 60_000),
    Model("consumer-tlc", 512_000_000_000, 1, 98_304, "own", 1_500),
    Model("enterprise-fdp", 1_920_000_000_000, 8, 1_572_864, "shared", 5_000),
)


@dataclass(frozen=True)
class Prediction:
    """Bytes of NAND programmed for the trace, and years until the cells' rating is used up."""

    model: str
    pstreams: int
    nand_now_bytes: int
    nand_off_bytes: int
    nand_streams_bytes: int
    nand_oracle_bytes: int
    years_now: float | None
    years_off: float | None
    years_streams: float | None


@dataclass(frozen=True)
class Machine:
    """Where the trace comes from. `used_pages` held data before; 0 seconds: time is not known.

    `held`, i64[runs, 2]: which pages those are, the first one of a run and how many; None: the
    first ones of the device.
    """

    capacity_pages: int
    used_pages: int
    seconds: float
    held: Ints | None = None

    def holding(self) -> Ints:
        """The pages in use, i64[runs, 2]: first page and pages."""
        return np.array([[0, self.used_pages]]) if self.held is None else self.held


NOWHERE = np.zeros((0, 2), np.int64)


@dataclass(frozen=True)
class Log:
    """The file system's own log: its place, i64[runs, 2], and how often it had to be written."""

    runs: Ints = field(default_factory=NOWHERE.copy)
    commits: int = 0


@dataclass(frozen=True)
class Recorded:
    """All writes, those of file data, and the data's vStreams. Records are telemetry's."""

    everything: Records
    data: Records
    log: Log = field(default_factory=Log)
    vstreams: Sequence[VStream] = (VStream(0),)  # of data, as far as anything is known


def fitted(model: Model, capacity_pages: int) -> Model:
    """The model at another size: as many blocks as it has, as far as they stay blocks."""
    share = capacity_pages * BLOCK_BYTES / model.capacity_bytes
    pages = min(round(model.block_pages * share), capacity_pages // _BLOCKS_MIN)
    pages = max(pages, _BLOCK_PAGES_MIN)
    size = capacity_pages * BLOCK_BYTES
    spare = model.spare + _RESERVE_BLOCKS * pages / capacity_pages
    return replace(model, capacity_bytes=size, block_pages=pages, spare=spare)


def without(held: Ints, runs: Ints) -> Ints:
    """The pages of `held` that are in none of the other runs, i64[runs, 2]; sorted."""
    edges = np.concatenate([held[:, 0], held.sum(axis=1), runs[:, 0], runs.sum(axis=1)])
    n, m = len(held), len(runs)
    steps = np.repeat([1, -1, 0, 0], [n, n, m, m]), np.repeat([0, 0, 1, -1], [n, n, m, m])
    order = np.argsort(edges, kind="stable")
    inside, struck = (np.cumsum(step[order]) for step in steps)
    kept = np.flatnonzero((inside > 0) & (struck == 0))
    kept = kept[kept < len(edges) - 1]
    out = np.column_stack([edges[order][kept], np.diff(edges[order])[kept]])
    return out[out[:, 1] > 0]


def log_pages(capacity_pages: int) -> int:
    """The pages that streamfs's log takes of a device."""
    return int(np.clip(capacity_pages // _LOG_SHARE, _LOG_PAGES_MIN, _LOG_PAGES_MAX))


def with_log(model: Model, used_pages: int) -> Model:
    """Where streamfs's log lies on it: a stream of its own and no copies, but less spare.

    It keeps two snapshots of what META holds, and what is between them: twice one, a half more on
    average (fuse-fs/meta/metadata_log.cc).
    """
    capacity = model.capacity_bytes // BLOCK_BYTES
    snapshot = used_pages / _DATA_OF_META
    live = 2 * snapshot + 1.5 * max(_LOG_LEAST_PAGES, 2 * snapshot)
    return replace(model, spare=max(model.spare - min(live, log_pages(capacity)) / capacity, 0.001))


def tagged(records: Records, tags: Tags) -> Records:
    """The records with a pStream each; one is split where its pages' pStreams differ."""
    trims = records["kind"] == KIND_TRIM
    pages = np.where(trims, 1, records["pages"]).astype(np.int64)
    row, place = pages_one_by_one(pages)
    tag = np.zeros(len(row), np.int64)
    tag[~trims[row]] = tags
    starts = np.flatnonzero((place == 0) | (np.diff(tag, prepend=-1) != 0))
    out = records[row[starts]]
    written = out["kind"] != KIND_TRIM
    out["pages"][written] = np.diff(np.append(starts, len(row)))[written]
    out["block"] += np.where(written, place[starts], 0).astype(np.uint64)
    out["request_offset"] += np.where(written, place[starts], 0).astype(np.uint32)
    out["pstream"] = tag[starts]
    return out


def on_streamfs(requests: Requests, machine: Machine, vstreams: Sequence[VStream]) -> Recorded:
    """The writes that streamfs would have sent instead of another file system: where and when."""
    log = Log(requests.log_runs(), requests.commits())
    held = machine.holding()
    places = _core.OwnPlaces(machine.capacity_pages, log_pages(machine.capacity_pages))
    for first, pages in without(held, log.runs).tolist():
        places.hold(first, pages)
    data = places.take(requests.as_files()).view(RECORD)
    return Recorded(telemetry(requests.as_sent()), telemetry(data), log, vstreams)


@dataclass(frozen=True)
class _Placed:
    """Records with a pStream each, and after how many of them which pStreams are used no more."""

    records: Records
    releases: list[tuple[int, list[int]]] = field(default_factory=list)


def _learned(recorded: Recorded, device: Device, held: Ints) -> _Placed:
    """The placements that a daemon would have published on a device that holds data already."""
    data = recorded.data
    end = int((data["block"] + data["pages"]).max(initial=1))
    live = max(_core.PageTrace(data).peak_live, int(held[:, 1].sum()), 1)
    settings = Settings(epoch_pages=epoch_pages_for(live))
    contest = Contest(end, device, settings, CANDIDATES, "life-table")
    contest.know(recorded.vstreams)
    for first, pages in held.tolist():
        contest.fill(pages, first)
    parts, released = [np.zeros(0, np.uint8)], list[tuple[int, list[int]]]()
    before = frozenset[int]()
    for tags, server, _ in contest.run(data):
        if gone := before - contest.used_[server]:
            released.append((sum(map(len, parts)), sorted(gone)))
        before = contest.used_[server]
        parts.append(tags[server])
    records = tagged(data, np.concatenate(parts))
    written = np.cumsum(np.where(records["kind"] == KIND_TRIM, 0, records["pages"]))
    return _Placed(
        records, [(int(np.searchsorted(written, at, "right")), gone) for at, gone in released]
    )


def _copies(model: Model, placed: _Placed, machine: Machine, held: Ints) -> npt.NDArray[np.float64]:
    """Pages copied: without streams, as placed, with deaths known."""
    one_in, parts = sampling(machine.capacity_pages)
    shadow = _core.SavingsShadow(
        machine.capacity_pages,
        model.pstreams,
        model.spare,
        model.block_pages,
        model.gc_mode,
        one_in,
        parts,
    )
    # Nobody's files begin where the SSD's blocks do.
    if len(held):
        shadow.fill(min(model.block_pages // 2, int(held[0, 1])), int(held[0, 0]))
    for first, pages in held.tolist():
        shadow.fill(pages, first)
    at = 0
    for end, streams in placed.releases:
        shadow.feed(placed.records[at:end])
        for stream in streams:
            shadow.release(stream)
        at = end
    shadow.feed(placed.records[at:])
    _, off, by_tag, settled, oracle, _ = shadow.counts().astype(np.float64).mean(axis=0)
    known = oracle * shadow.written / (settled * shadow.stride) if settled else by_tag
    return np.array([off, by_tag, known]) * shadow.stride


def _written(records: Records) -> int:
    return int(records["pages"][records["kind"] != KIND_TRIM].sum())


def predict(recorded: Recorded, machine: Machine, model: Model) -> Prediction:
    """From what was written."""
    everything, data, log = recorded.everything, recorded.data, recorded.log
    here, held = fitted(model, machine.capacity_pages), machine.holding()
    now = _written(everything) + _copies(here, _Placed(everything), machine, held)[0]
    there = with_log(here, machine.used_pages)
    files = held if machine.held is None else without(held, log.runs)
    # As the daemon's (daemon.py): as large as the device, however little of it is written to.
    device = Device(
        machine.capacity_pages, there.pstreams, there.spare, there.block_pages, there.gc_mode
    )
    learned = _learned(recorded, device, files)
    off, placed, oracle = _written(data) + log.commits + _copies(there, learned, machine, files)
    rated = here.capacity_bytes * (1 + here.spare) * here.cycles

    def years(pages: float) -> float | None:
        a_year = pages * BLOCK_BYTES * YEAR_SECONDS / machine.seconds if machine.seconds else 0.0
        return float(rated / a_year) if a_year else None

    bytes_of = [round(pages) * BLOCK_BYTES for pages in (now, off, placed, oracle)]
    return Prediction(
        model.name, model.pstreams, *bytes_of, *(years(pages) for pages in (now, off, placed))
    )


def as_json(machine: Machine, predictions: list[Prediction]) -> dict[str, object]:
    """For programs."""
    return {
        "schema": 1,
        "capacity_bytes": machine.capacity_pages * BLOCK_BYTES,
        "used_bytes": machine.used_pages * BLOCK_BYTES,
        "seconds": machine.seconds,
        "models": [asdict(each) for each in predictions],
    }
