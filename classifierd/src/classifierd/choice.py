"""Which placement serves? The one that would have cost least, once that is beyond doubt.

Each candidate tags the same writes on a shadow device of its own (_core.Shadow). Period by period
the differences in pages copied are paired, so that what the workload does to all of them cancels
out. A switch needs a mean difference that is worth it and three standard errors away from none.
Where there is no such difference among candidates, the one named first is preferred.

A device keeps for long what lies in its blocks, so going over to another placement has a price. To
count it, all shadow devices become at times what the serving candidate's is (a fork), and each
candidate goes on from there: what it saves from then on is what a switch at the fork would have
saved. Capacities below are of what is live at most, written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.records import Records

Tags = npt.NDArray[np.uint8]

_PERIOD_CAPACITIES = 1 / 16  # shorter epochs are taken together
_PERIODS_MIN = 3
_WORTH = 0.005  # pages copied for one written
_SURE = 3.0  # standard errors
# Before the first fork each candidate has a device that it filled alone, and nobody has gone over
# to anything: little need be seen. To leave no separation that is enough; what separates is left
# only for what is better from where it stands, so there the first fork comes before a switch.
_FIRST_CAPACITIES = 0.25
_UNSEPARATED = "nosep"
_CAPACITIES_MIN, _CAPACITIES_MAX = 2.0, 4.0  # since a fork


@dataclass(frozen=True)
class Verdict:
    """The end of an epoch: the candidate that serves from now on, and the recent cost of each."""

    serving: str
    copies: dict[str, float]  # for a page written, of those that the shadow devices follow
    switched: bool


class Choice:
    """Candidates in competition; one serves until another is better. Not thread-safe.

    `shadow` has a device for each of `names`. `serving` is the candidate that begins, the first by
    default. Raises ValueError if it is none.
    """

    def __init__(
        self, names: tuple[str, ...], shadow: _core.Shadow, serving: str | None = None
    ) -> None:
        if serving is not None and serving not in names:
            msg = f"no candidate {serving} among {', '.join(names)}"
            raise ValueError(msg)
        self.names = names
        self._serving = 0 if serving is None else names.index(serving)
        self._shadow = shadow
        self._copied = np.zeros(len(names))
        self._written = self._refused = 0
        self._begun = 0  # written when the history began
        self._forked = False  # ever
        self._decided = False
        self._history: list[npt.NDArray[np.float64]] = []
        self._used = [frozenset[int]()] * len(names)  # pStreams of each

    @property
    def serving(self) -> str:
        """The candidate that serves."""
        return self.names[self._serving]

    @property
    def decided(self) -> bool:
        """Whether evidence, here or in an earlier run, has said who serves."""
        return self._decided or len(self.names) == 1

    def fill(self, pages: int, first: int = 0) -> None:
        """So many pages, from `first` on, were written before, into the last pStream."""
        self._shadow.fill(pages, self._shadow.classes - 1, first)
        self._begin()

    def serve(self, name: str) -> bool:
        """Let a candidate serve, as in an earlier run; whether it is one."""
        if name not in self.names:
            return False
        self._serving = self.names.index(name)
        self._decided = True
        return True

    def use(self, used: list[frozenset[int]]) -> None:
        """Take the pStreams that each candidate writes to from now on: the others are released."""
        for number, (before, now) in enumerate(zip(self._used, used, strict=True)):
            self._release(number, before - now)
        self._used = used

    def _release(self, candidate: int, streams: frozenset[int]) -> None:
        for stream in sorted(streams):
            self._shadow.release(candidate, stream)

    def end_epoch(self, records: Records, tags: list[Tags]) -> Verdict:
        """Take the epoch's records and each candidate's tags for them, u8[pages written]; decide.

        Raises ValueError for tags that are too few or too high.
        """
        self._shadow.feed(records, np.concatenate(tags))
        written = self._shadow.written - self._written
        copies = (np.array(self._shadow.copied, np.float64) - self._copied) / max(written, 1)
        switched = False
        if written >= _PERIOD_CAPACITIES * self._shadow.live_pages:
            self._end_period(copies)
            switched = self._decide()
        by_name = dict(zip(self.names, copies.tolist(), strict=True))
        return Verdict(self.serving, by_name, switched)

    def _end_period(self, copies: npt.NDArray[np.float64]) -> None:
        doubtful = self._shadow.refused > self._refused
        self._copied = np.array(self._shadow.copied, np.float64)
        self._written, self._refused = self._shadow.written, self._shadow.refused
        if doubtful or not (self._history or copies.any()):
            self._begin()  # where nobody copies, nothing can be learned
        else:
            self._history.append(copies)

    def _begin(self) -> None:
        self._history.clear()
        self._begun = self._written

    def _fork(self) -> None:
        self._shadow.fork(self._serving)
        for number, used in enumerate(self._used):
            self._release(number, self._used[self._serving] - used)
        self._forked = True
        self._begin()

    def _decide(self) -> bool:
        seen = (self._written - self._begun) / self._shadow.live_pages
        wanted = _CAPACITIES_MIN if self._forked else _FIRST_CAPACITIES
        enough = len(self._history) >= _PERIODS_MIN
        judged = enough and seen >= wanted
        better = self._better() if judged else None
        self._decided |= judged
        going = better if self._forked or self.serving == _UNSEPARATED else None
        if going is not None:
            self._serving = going
        if better is not None or (enough and seen >= _CAPACITIES_MAX):
            self._fork()
        return going is not None

    def _better(self) -> int | None:
        """The candidate to go over to, if there is one.

        Among the candidates surely better than the serving one, it is the first that is not surely
        worse than the best: a moment's luck says little of placements that are nearly alike.
        """
        rows = np.array(self._history)
        better = _surely_positive(rows[:, [self._serving]] - rows)
        if not better.any():
            return None
        best = int(np.where(better, rows.mean(axis=0), np.inf).argmin())
        worse = _surely_positive(rows - rows[:, [best]])
        return int(np.argmax(better & ~worse))


def _surely_positive(saved: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Whether a candidate's mean saving, of f64[periods, candidates], is worth it and sure."""
    mean = saved.mean(axis=0)
    error = saved.std(axis=0, ddof=1) / np.sqrt(len(saved))
    positive: npt.NDArray[np.bool_] = (mean > _WORTH) & (mean > _SURE * error)
    return positive
