"""Which placement serves? The one that would have cost least, once that is beyond doubt.

Each candidate tags the same writes on a shadow device of its own (_core.Shadow). After an epoch the
differences in pages copied are paired, so that what the workload does to all of them cancels out. A
switch needs a mean difference over several epochs that is worth it and three standard errors away
from none: moving is not free, because a device keeps for long what lies in its blocks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.records import Records

Tags = npt.NDArray[np.uint8]

_EPOCHS_MIN, _EPOCHS_MAX = 4, 16
_WORTH = 0.005  # pages copied for one written
_SURE = 3.0  # standard errors


@dataclass(frozen=True)
class Verdict:
    """One epoch's end: who serves from now on, and what each would have cost in this epoch."""

    serving: str
    copies: dict[str, float]  # for a page written
    switched: bool


class Choice:
    """Candidates in competition; the first serves until another is better. Not thread-safe."""

    def __init__(
        self,
        names: tuple[str, ...],
        live_pages: int,
        classes: int,
        spare: float = 0.07,
        block_pages: int = 256,
    ) -> None:
        self.names = names
        self.serving = 0
        self._shadow = _core.Shadow(live_pages, len(names), classes, spare, block_pages)
        self._copied = np.zeros(len(names))
        self._written = self._refused = 0
        self._history: deque[npt.NDArray[np.float64]] = deque(maxlen=_EPOCHS_MAX)

    def end_epoch(self, records: Records, tags: list[Tags]) -> Verdict:
        """Take the epoch's records and each candidate's tags for them; decide."""
        self._shadow.feed(records, np.concatenate(tags))
        copied = np.array(self._shadow.copied, np.float64)
        written = self._shadow.written - self._written
        copies = (copied - self._copied) / max(written, 1)
        doubtful = self._shadow.refused > self._refused
        self._copied, self._written = copied, self._shadow.written
        self._refused = self._shadow.refused
        if doubtful:
            self._history.clear()
        elif copies.any():  # where nobody copies, nothing can be learned
            self._history.append(copies)
        switched = self._decide()
        by_name = dict(zip(self.names, copies.tolist(), strict=True))
        return Verdict(self.names[self.serving], by_name, switched)

    def _decide(self) -> bool:
        if len(self._history) < _EPOCHS_MIN:
            return False
        rows = np.array(self._history)
        saved = rows[:, [self.serving]] - rows
        mean = saved.mean(axis=0)
        error = saved.std(axis=0, ddof=1) / np.sqrt(len(rows))
        better = (mean > _WORTH) & (mean > _SURE * error)
        if not better.any():
            return False
        self.serving = int(np.where(better, mean, -np.inf).argmax())
        self._history.clear()
        return True
