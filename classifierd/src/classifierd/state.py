"""The daemon's memory between runs: one file a filesystem, replaced whole, checked before use.

The published model is a file of its own, which the filesystem reads (base/wire/stored_model.h).

Layout: magic, CRC32C of what follows it, then a numpy archive. Anything wrong with a file means a
cold start and a line in the log, never a crash and never half a memory.
"""

from __future__ import annotations

import io
import json
import logging
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.contest import Contest
from classifierd.contexts import VStream

log = logging.getLogger(__name__)

_MAGIC = b"SFSLIFE1"
_VERSION = 5
_BEFORE_FILE_PLACES = 4  # its logistic model has other features
_BEFORE_CHUNKS, _STRIDE_BEFORE = 3, 40  # without a logistic model and classes of chunks
_VERSIONS = (_BEFORE_CHUNKS, _BEFORE_FILE_PLACES, _VERSION)
_BYTES_MAX = 1 << 30
_IDENTITY = ("source", "name", "comm", "ext", "dir")

Arrays = dict[str, npt.NDArray[np.generic]]


def path_of(directory: Path, uuid: bytes) -> Path:
    """The state file of one filesystem."""
    return directory / f"{uuid.hex()}.life"


def model_path_of(directory: Path, uuid: bytes) -> Path:
    """The file with the model that a mount of the filesystem begins with, if it has no daemon."""
    return directory / f"{uuid.hex()}.model"


def replace_whole(path: Path, body: bytes) -> None:
    """Write a file that only its owner reads; after a crash the old or the new one is there.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    created = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(created, "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def save(directory: Path, uuid: bytes, contest: Contest) -> None:
    """Write the state; after a crash either the old or the new one is there. Raises OSError."""
    learner = contest.learner
    cells, volume, deaths, entered = learner.life.cells()
    meta = {
        "version": _VERSION,
        "serving": contest.serving if contest.decided else "",
        "uuid": uuid.hex(),
        "live_pages": learner.live_pages,
        "logistic": contest.logistic_axis(),
        "vstreams": [
            [v.number, *(getattr(v, key) for key in _IDENTITY)] for v in learner.vstreams.values()
        ],
    }
    archive = io.BytesIO()
    vstream, shape = cells // _core.SHAPES, cells % _core.SHAPES
    edges = learner.edges_ if learner.edges_ is not None else np.zeros(0)
    arrays: Arrays = {
        "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "cells": cells,
        "volume": volume,
        "deaths": deaths.astype(np.float32),
        "entered": entered.astype(np.float32),
        "edges": edges,
        "classes": learner.table_[learner.row_of_[vstream], shape],
        "chunks": contest.chunks.map_,
        "centres": contest.chunks.centres_,
        **contest.logistic_arrays(),
    }
    np.savez_compressed(archive, **arrays)  # type: ignore[arg-type]
    body = archive.getvalue()
    replace_whole(path_of(directory, uuid), _MAGIC + struct.pack("<I", _core.crc32c(body)) + body)


def _body(path: Path) -> bytes:
    if path.stat().st_size > _BYTES_MAX:
        msg = "absurdly large"
        raise ValueError(msg)
    data = path.read_bytes()
    if len(data) < len(_MAGIC) + 4 or not data.startswith(_MAGIC):
        msg = "no state file of this version"
        raise ValueError(msg)
    (crc,) = struct.unpack_from("<I", data, len(_MAGIC))
    body = data[len(_MAGIC) + 4 :]
    if _core.crc32c(body) != crc:
        msg = "wrong checksum"
        raise ValueError(msg)
    return body


def _known_then(rows: object) -> dict[int, VStream]:
    if not isinstance(rows, list):
        msg = "no vStreams"
        raise TypeError(msg)
    return {int(row[0]): VStream(int(row[0]), *(str(text) for text in row[1:6])) for row in rows}


def renumber(then: dict[int, VStream], now: dict[int, VStream]) -> npt.NDArray[np.int64]:
    """Old vStream number → today's; -1 where the number now means something else."""
    by_identity = {v.identity: v.number for v in now.values()}
    out = np.arange(_core.VSTREAMS, dtype=np.int64)
    for number in now:
        if number not in then or then[number].identity != now[number].identity:
            out[number] = -1
    for number, vstream in then.items():
        if 0 <= number < _core.VSTREAMS and vstream.identity in by_identity:
            out[number] = by_identity[vstream.identity]
    return out


def _restore(path: Path, uuid: bytes, contest: Contest) -> int:
    learner = contest.learner
    with np.load(io.BytesIO(_body(path)), allow_pickle=False) as archive:
        arrays: Arrays = {name: archive[name] for name in archive.files}
    meta = json.loads(bytes(arrays["meta"].astype(np.uint8)))
    if meta["version"] not in _VERSIONS or meta["uuid"] != uuid.hex():
        msg = "made for another filesystem or by another version"
        raise ValueError(msg)
    cells = arrays["cells"].astype(np.int64)
    if meta["version"] == _BEFORE_CHUNKS:
        cells = cells // _STRIDE_BEFORE * _core.SHAPES + cells % _STRIDE_BEFORE
    if cells.ndim != 1 or ((cells < 0) | (cells >= _core.VSTREAMS * _core.SHAPES)).any():
        msg = "cells that do not exist"
        raise ValueError(msg)
    numbers = renumber(_known_then(meta["vstreams"]), learner.vstreams)
    moved = numbers[cells // _core.SHAPES]
    fresh = moved * _core.SHAPES + cells % _core.SHAPES
    # Where two vStreams of then are one now, the first speaks.
    first = np.zeros(len(fresh), np.bool_)
    first[np.unique(fresh, return_index=True)[1]] = True
    keep = first & (moved >= 0)
    # Cells of chunk classes mean nothing without the map that they were counted by.
    mapped = "chunks" in arrays and len(arrays["centres"]) <= contest.chunks.k
    if not mapped:
        keep &= fresh % _core.SHAPES < _core.SHAPES // _core.CHUNK_CLASSES
    volume, deaths, entered = (
        arrays[name][keep].astype(np.float64) for name in ("volume", "deaths", "entered")
    )
    if not learner.life.restore(fresh[keep].astype(np.uint32), volume, deaths, entered):
        msg = "life tables that cannot be"
        raise ValueError(msg)
    edges = arrays["edges"].astype(np.float64)
    sound = len(edges) == learner.pstreams - 1 and not np.isnan(edges).any()
    learner.edges_ = edges if sound and (np.sort(edges) == edges).all() else None
    if learner.edges_ is not None:
        learner.stay(fresh[keep], arrays["classes"][keep].astype(np.uint8), int(meta["live_pages"]))
    if mapped:
        contest.chunks.restore(arrays["chunks"], arrays["centres"])
        learner.chunks_ = contest.chunks.map_
    if meta["version"] == _VERSION:
        contest.restore_logistic(meta["logistic"], arrays)
    contest.serve(str(meta.get("serving", "")))
    return int(keep.sum())


def load(directory: Path, uuid: bytes, contest: Contest) -> bool:
    """Take up where the last run ended, if its state is sound; else say why not and start cold.

    After a state that is not sound, `contest` has a part of it: make another one.
    """
    path = path_of(directory, uuid)
    if not path.exists():
        log.info("no state of this filesystem in %s: starting cold", directory)
        return False
    try:
        count = _restore(path, uuid, contest)
    except (
        OSError,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        EOFError,
        NotImplementedError,
        AttributeError,
        OverflowError,
        zipfile.BadZipFile,
    ) as error:
        log.warning("state %s not used (%s): starting cold", path, error)
        return False
    log.info("state %s: %d life tables restored, %s wins", path, count, contest.serving)
    return True
