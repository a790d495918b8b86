"""The filesystem's description of each vStream, as numbers the life table can group by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

VSTREAMS = 65536
_TEXT_MAX = 256


@dataclass(frozen=True)
class VStream:
    """The descriptor of a vStream: the label's source and the known facts about its writer."""

    number: int
    source: str = "default"
    name: str = ""
    comm: str = ""
    ext: str = ""
    dir: str = ""
    # The generation of the number's use, by this mount or an earlier one; -1: not known.
    generation: int = field(default=-1, kw_only=True)

    @property
    def label(self) -> str:
        """A short name for people."""
        if self.name and self.source != "context":
            return self.name
        parts = [part for part in (self.comm, self.dir) if part]
        text = ":".join(parts) + (f"/*.{self.ext}" if self.ext else "")
        return text or self.name or f"vstream {self.number}"

    @property
    def identity(self) -> tuple[str, str, str, str, str]:
        """The identity, which stays the same when the filesystem numbers its vStreams anew."""
        return (self.source, self.name, self.comm, self.ext, self.dir)


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value[:_TEXT_MAX] if isinstance(value, str) else ""


def parse_streams(rows: object) -> list[VStream]:
    """The control socket's "streams" rows; what is not a vStream row is left out."""
    if not isinstance(rows, list):
        return []
    known: dict[int, VStream] = {}
    for row in rows:
        number = row.get("vstream") if isinstance(row, dict) else None
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < VSTREAMS:
            continue
        texts = {key: _text(row, key) for key in ("source", "name", "comm", "ext", "dir")}
        use = row.get("generation")
        known[number] = VStream(
            number, **texts, generation=use if isinstance(use, int) and 0 <= use < 256 else -1
        )
    return list(known.values())


def uses_of(vstreams: Iterable[VStream]) -> npt.NDArray[np.uint16]:
    """The use of each number as a stored model names it (base/wire/stored_model.h), u16[65536]."""
    out = np.zeros(VSTREAMS, np.uint16)
    for v in vstreams:
        out[v.number] = v.generation + 1
    return out


class ContextIds:
    """Gives every comm, extension and directory a number, the same for as long as it lives."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {"": 0}

    def _id(self, text: str) -> int:
        return self._ids.setdefault(text, len(self._ids))

    def rows(self, vstreams: Iterable[VStream]) -> npt.NDArray[np.uint32]:
        """A row of (comm, ext, dir) for each vStream number; zeros where nothing is known."""
        known = list(vstreams)
        out = np.zeros((1 + max((v.number for v in known), default=0), 3), np.uint32)
        for v in known:
            out[v.number] = (self._id(v.comm), self._id(v.ext), self._id(v.dir))
        return out
