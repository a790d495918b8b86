"""What would streams save here? Predicts NAND bytes and a drive's years from a recorded trace.

For each model of SSD, made as large as the device recorded and filled as far: what it programs for
the trace as it is; for the same data on streamfs without streams (its metadata goes to META, so a
file system's log and what it says is metadata is left out) and with streams as learned; and with
all deaths known, which is the most that placement could do.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.choice import Tags
from classifierd.contest import PUBLISHED, Contest, Device
from classifierd.contexts import VStream
from classifierd.learner import Settings, epoch_pages_for
from classifierd.records import BLOCK_BYTES, KIND_TRIM, Records, pages_one_by_one
from classifierd.savings import sampling

YEAR_SECONDS = 365.25 * 86_400
_BLOCKS_MIN = 512  # of a device that is simulated smaller than its model
_BLOCK_PAGES_MIN = 32


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
    """Where the trace comes from. `used_pages` held data before; 0 seconds: time is not known."""

    capacity_pages: int
    used_pages: int
    seconds: float


def fitted(model: Model, capacity_pages: int) -> Model:
    """The model at another size: as many blocks as it has, as far as they stay blocks."""
    share = capacity_pages * BLOCK_BYTES / model.capacity_bytes
    pages = min(round(model.block_pages * share), capacity_pages // _BLOCKS_MIN)
    pages = max(pages, _BLOCK_PAGES_MIN)
    size = capacity_pages * BLOCK_BYTES
    return replace(model, capacity_bytes=size, block_pages=pages)


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


def _learned(data: Records, device: Device, live: int) -> Tags:
    """What the daemon would have published, by addresses and requests alone; u8[pages written]."""
    end = int((data["block"] + data["pages"]).max(initial=1))
    settings = Settings(epoch_pages=epoch_pages_for(live))
    contest = Contest(end, device, settings, PUBLISHED, PUBLISHED[0])
    contest.know([VStream(0)])
    parts = [tags[server] for tags, server, _ in contest.run(data)]
    return np.concatenate([np.zeros(0, np.uint8), *parts])


def _copies(model: Model, records: Records, machine: Machine) -> npt.NDArray[np.float64]:
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
    shadow.fill(machine.used_pages)
    shadow.feed(records)
    _, off, placed, settled, oracle, _ = shadow.counts().astype(np.float64).mean(axis=0)
    known = oracle * shadow.written / (settled * shadow.stride) if settled else placed
    return np.array([off, placed, known]) * shadow.stride


def _written(records: Records) -> int:
    return int(records["pages"][records["kind"] != KIND_TRIM].sum())


def predict(everything: Records, data: Records, machine: Machine, model: Model) -> Prediction:
    """From what was written in all, and what of it is file data. Records are telemetry's."""
    here = fitted(model, machine.capacity_pages)
    now = _written(everything) + _copies(here, everything, machine)[0]
    live = max(_core.PageTrace(data).peak_live, 1)
    spare = (machine.capacity_pages * (1 + here.spare)) / max(live, machine.used_pages) - 1
    device = Device(live, here.pstreams, min(spare, 1.0), here.block_pages, here.gc_mode)
    tags = _learned(data, device, live)
    off, placed, oracle = _written(data) + _copies(here, tagged(data, tags), machine)
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
