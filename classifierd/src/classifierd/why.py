"""Why data goes where it goes, by the filesystem and the daemon's memory."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from classifierd import _core, state
from classifierd.clusters import ChunkClass
from classifierd.contest import TABLES, Contest, Device
from classifierd.contexts import VStream, parse_streams
from classifierd.control import ControlClient, ControlError, socket_path
from classifierd.explain import chunk_line, size
from classifierd.records import BLOCK_BYTES, CHUNK_PAGES

Row = dict[str, object]

# base/wire/hint_ioctl.h
_HINT = struct.Struct("<IIHHIQ32s")
_IOC_HINT = 3 << 30 | _HINT.size << 16 | ord("M") << 8 | 0x53
_VERSION, _QUERY = 1, 0
# base/wire/model_table.h: END classes, of each age class of what is overwritten.
_PLACES = (
    "the only page of a request",
    "last of two pages",
    "first of two pages",
    "last page of a request",
    "last page but one",
    "earlier pages of a request",
)
_AGES = (
    "new",
    "overwriting what was written less than 1/64 of the device ago",
    "overwriting what was written less than 1/16 of the device ago",
    "overwriting what was written less than 1/4 of the device ago",
    "overwriting what was written less than the device's size ago",
    "overwriting what is older, or of unknown age",
)
_SHAPES = len(_PLACES) * len(_AGES)  # of each class of chunks


@dataclass(frozen=True)
class Shape:
    """The daemon's placement of one kind of write into the file."""

    write: str
    lifetime_bytes: int  # expected: written to the device until it dies
    evidence_pages: float  # behind the lifetime, of this vStream and those like it
    pstream: int


@dataclass(frozen=True)
class Block:
    """The filesystem's knowledge of a block of DATA, to the 64 KiB around it."""

    number: int
    known: bool  # it was written since the mount, and lives
    age_bytes: int = 0  # written to the device since then


@dataclass(frozen=True)
class Why:
    """All that decides where a file's next write goes, or that of what wrote a block."""

    path: str  # of a block: empty
    vstream: int
    source: str
    label: str
    lifetime_bytes: int  # as the filesystem measured it; 0: not known yet
    pstream: int  # of a plain new write
    shapes: list[Shape]  # empty: there is no memory of the daemon's to look at
    block: Block | None = None
    chunk: ChunkClass | None = None  # of the block's MiB; None: nothing is remembered of it


def why(path: Path, state_dir: Path | None) -> Why:
    """Ask the filesystem, and the daemon's memory if there is one.

    Raises ControlError if the path lies on no streamfs, or OSError.
    """
    number, pstream, lifetime = _query(path)
    with ControlClient(socket_path(_mount_of(path))) as client:
        rows, status = _rows(client), client.request("status")[0]
    row = _row_of(rows, number) | {"pstream": pstream, "lifetime_bytes": lifetime}
    return replace(of_row(row, Memory.of(status, rows, state_dir)), path=str(path))


def mount_of_here() -> Path:
    """The mount point that the working directory is below."""
    return _mount_of(Path.cwd())


def why_block(client: ControlClient, number: int, state_dir: Path | None) -> Why:
    """The same of block ``number`` of DATA, 4 KiB each from 0 on.

    Raises ControlError, with ERANGE where the device ends before.
    """
    said, _ = client.request("block", block=number)
    if said.get("known") is not True:
        return Why("", 0, "", "", 0, 0, [], Block(number, known=False))
    rows, status = _rows(client), client.request("status")[0]
    vstream = number_of(said, "vstream")
    row = _row_of(rows, vstream) | {"pstream": number_of(said, "pstream")}
    block = Block(number, known=True, age_bytes=number_of(said, "age_bytes"))
    memory = Memory.of(status, rows, state_dir)
    chunk = None if memory is None else memory.chunk_of(number)
    return replace(of_row(row, memory), block=block, chunk=chunk)


def number_of(row: Mapping[str, object], key: str) -> int:
    """The whole number there; 0 where there is none."""
    value = row.get(key)
    return value if isinstance(value, int) else 0


def of_row(row: Mapping[str, object], memory: Memory | None) -> Why:
    """The same of a row of the control socket's "streams", which is no file's and no block's."""
    number = number_of(row, "vstream")
    vstream = next(iter(parse_streams([row])), VStream(number))
    shapes = [] if memory is None else list(memory.shapes(number))
    lifetime, pstream = number_of(row, "lifetime_bytes"), number_of(row, "pstream")
    return Why("", number, vstream.source, vstream.label, lifetime, pstream, shapes)


def _rows(client: ControlClient) -> list[Row]:
    listed = client.request("streams")[0].get("streams")
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []


def _row_of(rows: list[Row], vstream: int) -> Row:
    """The vStream's row; one that says its number only where there is none."""
    unknown: Row = {"vstream": vstream, "source": VStream(vstream).source}
    return next((row for row in rows if row.get("vstream") == vstream), unknown)


def _query(path: Path) -> tuple[int, int, int]:
    """Return the file's vStream, its pStream and its lifetime in bytes."""
    asked = bytearray(_HINT.pack(_VERSION, _QUERY, 0, 0, 0, 0, b""))
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, _IOC_HINT, asked)
    except OSError as error:
        if error.errno != errno.ENOTTY:
            raise
        msg = f"{path}: on no streamfs"
        raise ControlError(errno.ENOTTY, msg) from error
    finally:
        os.close(fd)
    _, _, number, pstream, _, lifetime, _ = _HINT.unpack(asked)
    return number, pstream, lifetime


def _mount_of(path: Path) -> Path:
    path = path.resolve()
    while not path.is_mount():
        path = path.parent
    return path


class Memory:
    """The daemon's memory of one filesystem, as it lies in its state directory."""

    def __init__(self, contest: Contest) -> None:
        self._learner = contest.learner
        self._chunks = contest.chunks
        self._placed = contest.table_of(contest.serving)

    @staticmethod
    def of(status: Mapping[str, object], rows: list[Row], state_dir: Path | None) -> Memory | None:
        """Read it for the filesystem that answered so; None where nothing is remembered."""
        if state_dir is None:
            return None
        uuid = bytes.fromhex(str(status.get("uuid", "")).replace("-", ""))
        device = Device(_SHAPES, max(number_of(status, "pstreams"), 1))
        # If a logistic model serves, the life table is what can be explained.
        contest = Contest(1, device, candidates=TABLES, serving="life-table")
        contest.know(parse_streams(rows))
        if not state.load(state_dir, uuid, contest):
            return None
        contest.refresh()
        return Memory(contest)

    def chunk_of(self, block: int) -> ChunkClass | None:
        """Return the class of the chunk that holds a block; None if it has none."""
        number = block // CHUNK_PAGES
        identity = int(self._chunks.map_[number]) if number < len(self._chunks.map_) else 0
        return {each.identity: each for each in self._chunks.classes()}.get(identity)

    def shapes(self, vstream: int) -> Iterator[Shape]:
        """Each kind of write with evidence, most evidence first."""
        mean, evidence = self._learner.expected(vstream)
        for shape in np.argsort(-evidence, kind="stable"):
            if evidence[shape] >= 1:
                place = _PLACES[shape % len(_PLACES)]
                kind = _AGES[shape // len(_PLACES) % len(_AGES)]
                chunks = shape // _SHAPES
                where = f", in chunks of class {chunks}" if chunks else ""
                pages = round(2.0 ** float(mean[shape]))
                yield Shape(
                    f"{place}, {kind}{where}",
                    pages * BLOCK_BYTES,
                    round(float(evidence[shape]), 1),
                    int(self._placed[self._learner.row_of_[vstream], shape]),
                )


def as_json(found: Why) -> dict[str, object]:
    """The same as plain values."""
    return asdict(found)


def lines(found: Why) -> Iterator[str]:
    """In sentences."""
    if found.block is not None and not found.block.known:
        yield f"block {found.block.number}: not written since the mount, or it does not live"
        return
    what = found.path
    if found.block is not None:
        age = size(found.block.age_bytes / BLOCK_BYTES)
        what = f"block {found.block.number}, written {age} of writes ago"
    yield f"{what}: vStream {found.vstream}, by {found.source}: {found.label}"
    measured = size(found.lifetime_bytes / BLOCK_BYTES) if found.lifetime_bytes else "not known yet"
    yield f"  its data lives, as measured so far: {measured} of writes"
    yield f"  the table sends a new write of one page to pStream {found.pstream}"
    if found.chunk is not None:
        yield f"  its {chunk_line(found.chunk.identity, found.chunk.chunks, found.chunk.features)}"
    if not found.shapes:
        yield "  no memory of the daemon's to look at (--state DIR says where it is)"
    yield from shape_lines(found)


def shape_lines(found: Why) -> Iterator[str]:
    """A line for each kind of write that the daemon's memory knows."""
    for each in found.shapes:
        yield (
            f"  {each.write}: lives {size(each.lifetime_bytes / BLOCK_BYTES)} of writes, "
            f"seen on {each.evidence_pages:,.0f} pages → pStream {each.pstream}"
        )


assert _SHAPES * _core.CHUNK_CLASSES == _core.SHAPES
