"""The saving by streams on this device: shadow devices' counts, by month, kept across restarts.

_core.SavingsShadow counts the copies without streams and by placement, in each of a few disjoint
samples of the chunks. Here they become bytes of NAND with 95 % limits: by the differences between
the samples (Student's t), or without limits where all of the device is followed. A daemon that
starts does not know where on the device data lies: to the shadow it is written once, in order, with
and without streams. Until that data is overwritten, the saving is too low.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.contest import PSTREAMS_MAX, Device
from classifierd.records import BLOCK_BYTES, Records
from classifierd.state import replace_whole

log = logging.getLogger(__name__)

REPORT_VERSION = 1  # base/wire/control.h, savings
_STATE_VERSION = 1
_STATE_BYTES_MAX = 1 << 20
_MONTHS_KEPT = 24
# Moments told to the filesystem; where there are more, every second goes.
_MOMENTS_MAX = 256
_MOMENT_FIGURES = 7
# A wall clock that says less than this (2024) has no battery and has not been set yet.
_CLOCK_IS_SET_MS = 1_704_067_200_000
# Up to so many pages of the device are all followed; of a larger one a 64th, but no fewer than
# the second and no more than the third.
_ALL_FOLLOWED, _FOLLOWED_MIN, _FOLLOWED_MAX = 1 << 19, 1 << 18, 1 << 20
_ONE_IN = 64
_PARTS = 4
_T95 = 3.182  # Student's t for 95 % of three degrees of freedom
_ORDER = ("written", "off", "placed", "oracle_written", "oracle", "refused")

Sums = npt.NDArray[np.float64]


def sampling(capacity_pages: int) -> tuple[int, int]:
    """How the shadow samples a device: one chunk in how many it follows, and in how many parts."""
    if capacity_pages <= _ALL_FOLLOWED:
        return 1, 1
    one_in = min(max(capacity_pages // _FOLLOWED_MIN, 1), _ONE_IN)
    return max(one_in, capacity_pages // _FOLLOWED_MAX), _PARTS


@dataclass
class Period:
    """The counts since a moment: pages, estimated for the whole device."""

    since_ms: int
    written: float = 0.0
    # By what was followed otherwise before: a device that has grown, another version's sampling.
    off_before: float = 0.0
    placed_before: float = 0.0
    oracle_before: float = 0.0
    variance_before: float = 0.0  # of what was saved
    # Since then, what each part says of the whole device.
    off: Sums = field(default_factory=lambda: np.zeros(1))
    placed: Sums = field(default_factory=lambda: np.zeros(1))
    oracle: float = 0.0

    def fold(self, parts: int) -> None:
        """Close what the present sampling says, and go on with so many parts."""
        self.off_before, self.placed_before = self.off_copied, self.placed_copied
        self.oracle_before, self.oracle = self.oracle_before + self.oracle, 0.0
        self.variance_before = self.variance
        self.off, self.placed = np.zeros(parts), np.zeros(parts)

    @property
    def off_copied(self) -> float:
        """Pages that garbage collection would have copied without streams."""
        return self.off_before + float(self.off.mean())

    @property
    def placed_copied(self) -> float:
        """Pages that it copies by placement."""
        return self.placed_before + float(self.placed.mean())

    @property
    def oracle_copied(self) -> float:
        """Pages that it would have copied, had deaths been known."""
        return self.oracle_before + self.oracle

    @property
    def variance(self) -> float:
        """The variance of the saving, from the differences between the parts."""
        parts = len(self.off)
        now = float(np.var(self.off - self.placed, ddof=1)) / parts if parts > 1 else 0.0
        return self.variance_before + now

    def as_report(self) -> dict[str, int]:
        """In bytes, with limits."""
        saved = self.off_copied - self.placed_copied
        half = _T95 * math.sqrt(self.variance)
        figures = {
            "written_bytes": self.written,
            "nand_off_bytes": self.written + self.off_copied,
            "nand_placed_bytes": self.written + self.placed_copied,
            "nand_oracle_bytes": self.written + self.oracle_copied,
            "saved_low_bytes": saved - half,
            "saved_bytes": saved,
            "saved_high_bytes": saved + half,
        }
        return {"since_ms": self.since_ms} | {
            name: round(pages) * BLOCK_BYTES for name, pages in figures.items()
        }

    def as_state(self) -> dict[str, object]:
        """For the state file."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    @staticmethod
    def from_state(told: Any) -> Period:
        """Raise ValueError, TypeError or KeyError for what as_state() cannot have written."""
        names = [name for name in vars(Period(0)) if name not in ("since_ms", "off", "placed")]
        numbers = {name: float(told[name]) for name in names}
        off, placed = (np.array(told[name], np.float64) for name in ("off", "placed"))
        every = np.array([*numbers.values(), *off, *placed])
        if off.shape != placed.shape or off.ndim != 1 or not 1 <= len(off) <= 64:
            msg = "parts that do not match"
            raise ValueError(msg)
        if not np.isfinite(every).all() or (every < 0).any() or (every > 2.0**50).any():
            msg = "figures that cannot be"
            raise ValueError(msg)
        return Period(int(told["since_ms"]), off=off, placed=placed, **numbers)


def month_of(now_ms: int) -> str:
    """The calendar month (UTC)."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m")


class Savings:
    """The shadow devices of a filesystem and their sums. Not thread-safe.

    `used_blocks` of the device hold data already. Times are milliseconds since 1970.
    """

    def __init__(self, capacity_pages: int, device: Device, used_blocks: int, now_ms: int) -> None:
        self.one_in, self.parts = sampling(capacity_pages)
        self._shadow = _core.SavingsShadow(
            max(capacity_pages, 1),
            min(device.pstreams, PSTREAMS_MAX),
            device.spare,
            device.block_pages,
            device.gc_mode,
            self.one_in,
            self.parts,
            device.victim,
        )
        self._shadow.fill(used_blocks)
        self.all = Period(now_ms)
        self.all.fold(self.parts)
        self.months: dict[str, Period] = {}
        self.moments: list[list[int]] = []
        # When each was, by the steady clock; None: an earlier run's, whose steady clock is gone.
        self._steady_ms: list[int | None] = []
        self._moment_ms = 1000  # apart
        self._moment_at: int | None = None  # the last one, by the steady clock
        self._loaded_ms = 0  # the last one that an earlier run remembered
        self._loaded_in_doubt = False  # not yet held against a clock that is set
        self._counted, self._written = self._counts(), 0
        self._complained = False

    def _counts(self) -> dict[str, Sums]:
        """Each part's estimate for the whole device."""
        columns = self._shadow.counts().astype(np.float64).T
        return dict(zip(_ORDER, columns * float(self._shadow.stride), strict=True))

    def feed(self, records: Records) -> None:
        """Take what was written and trimmed."""
        self._shadow.feed(records)

    def release(self, pstreams: Iterable[int]) -> None:
        """Placement has no use for these for long: the device closes their open blocks."""
        for pstream in sorted(pstreams):
            self._shadow.release(pstream)

    def count(self, now_ms: int) -> None:
        """Add what came since the last time to the sums."""
        now = self._counts()
        more = {name: now[name] - self._counted[name] for name in _ORDER}
        written = self._shadow.written - self._written
        self._counted, self._written = now, self._shadow.written
        if more["refused"].any() and not self._complained:
            self._complained = True
            log.warning("a shadow device is full: what streams save is not sure")
        running = month_of(now_ms)
        month = self.months.setdefault(running, Period(now_ms))
        for period in (self.all, month):
            if len(period.off) != self.parts:
                period.fold(self.parts)
            period.written += written
            period.off = period.off + more["off"]
            period.placed = period.placed + more["placed"]
            period.oracle += self._oracle(more, written)
        for name in sorted(self.months)[:-_MONTHS_KEPT]:
            if name != running:  # by a clock that is set back it may be the oldest
                del self.months[name]

    def remember(self, now_ms: int, steady_ms: int, written_bytes: int, nand_bytes: int) -> None:
        """Add a moment to the history, if the last is long enough ago.

        The figures are the device's own, 0 where it does not tell them. Moments are apart by a
        clock that only goes on, and dated by what the wall clock says now: whatever it said
        meanwhile, as soon as it is right all moments of this run are.
        """
        self._date(now_ms, steady_ms)
        if self._moment_at is None:  # how long ago the last run's last was, only the wall says
            last = self.moments[-1][0] if self.moments else now_ms - self._moment_ms
            self._moment_at = steady_ms - max(0, now_ms - last)
        if steady_ms - self._moment_at < self._moment_ms:
            return
        self._moment_at = steady_ms
        now_ms = max(now_ms, self._loaded_ms)
        said = self.all.as_report()
        names = ("written_bytes", "nand_off_bytes", "nand_placed_bytes", "nand_oracle_bytes")
        self.moments.append([now_ms, *(said[name] for name in names), written_bytes, nand_bytes])
        self._steady_ms.append(steady_ms)
        if len(self.moments) > _MOMENTS_MAX:
            self.moments, self._steady_ms = self.moments[::2], self._steady_ms[::2]
            self._moment_ms *= 2

    def _date(self, now_ms: int, steady_ms: int) -> None:
        """Date all moments anew.

        This run's moments are dated by how long ago they were, but after the last of an earlier
        run. Moments of earlier runs stay, but none is later than now: a clock that was ahead dated
        it. They are dated once, and not by a clock that has not been set.
        """
        late = self._loaded_in_doubt and now_ms >= _CLOCK_IS_SET_MS
        if late:
            self._loaded_in_doubt, self._loaded_ms = False, min(self._loaded_ms, now_ms)
        for moment, then_ms in zip(self.moments, self._steady_ms, strict=True):
            if then_ms is not None:
                moment[0] = max(self._loaded_ms, now_ms - (steady_ms - then_ms))
            elif late:
                moment[0] = min(moment[0], now_ms)

    def _oracle(self, more: dict[str, Sums], written: int) -> float:
        """Copies for so many pages; by placement until the first deaths are known."""
        settled = float(more["oracle_written"].sum())
        if settled == 0:
            return float(more["placed"].mean())
        return written * float(more["oracle"].sum()) / settled

    def report(self, now_ms: int) -> dict[str, object]:
        """The report to the filesystem (base/wire/control.h, savings)."""
        month = self.months.get(month_of(now_ms), Period(now_ms))
        return {
            "version": REPORT_VERSION,
            "one_in": self.one_in,
            "all": self.all.as_report(),
            "month": month.as_report(),
            "history": self.moments,
        }

    def save(self, directory: Path, uuid: bytes) -> None:
        """Keep the sums; after a crash either the old or the new ones are there. Raises OSError."""
        body = {
            "version": _STATE_VERSION,
            "uuid": uuid.hex(),
            "all": self.all.as_state(),
            "moments": self.moments,
            "months": {name: period.as_state() for name, period in self.months.items()},
        }
        replace_whole(state_path(directory, uuid), json.dumps(body).encode())

    def load(self, directory: Path, uuid: bytes) -> bool:
        """Go on with an earlier run's sums, if they are sound; else say why not."""
        path = state_path(directory, uuid)
        try:
            if not path.exists():
                return False
            self._restore(path, uuid)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            log.warning("%s not used (%s): savings are counted from now on", path, error)
            return False
        return True

    def _restore(self, path: Path, uuid: bytes) -> None:
        if path.stat().st_size > _STATE_BYTES_MAX:
            msg = "absurdly large"
            raise ValueError(msg)
        body = json.loads(path.read_text())
        if body["version"] != _STATE_VERSION or body["uuid"] != uuid.hex():
            msg = "made for another filesystem or by another version"
            raise ValueError(msg)
        every = Period.from_state(body["all"])
        months = {str(name): Period.from_state(told) for name, told in body["months"].items()}
        for period in (every, *months.values()):
            if len(period.off) != self.parts:
                period.fold(self.parts)
        moments = _moments(body["moments"])
        self.all, self.months, self.moments = every, months, moments
        self._steady_ms = [None] * len(moments)
        self._loaded_ms = moments[-1][0] if moments else 0
        self._loaded_in_doubt = True
        # A gap while no daemon ran is no distance kept: the smallest is. Two moments of one date
        # come from a wrong clock, and are no distance either.
        apart = {late[0] - early[0] for early, late in pairwise(self.moments)} - {0}
        self._moment_ms = max(self._moment_ms, min(apart, default=0))


def _moments(told: Any) -> list[list[int]]:
    """Raise ValueError or TypeError for what save() cannot have written."""
    rows = np.array(told, np.int64).reshape(-1, _MOMENT_FIGURES)
    if len(rows) > _MOMENTS_MAX or (rows < 0).any() or (np.diff(rows[:, 0]) < 0).any():
        msg = "moments that cannot be"
        raise ValueError(msg)
    return [[int(each) for each in row] for row in rows]


def state_path(directory: Path, uuid: bytes) -> Path:
    """Where the sums of one filesystem are kept."""
    return directory / f"{uuid.hex()}.saved"
