"""Requests recorded below another file system: what the device got, and what streamfs would send.

The other file system's blocks may be smaller than a page, or lie across pages: to the SSD each page
that is touched is written. On streamfs a file's page is a page.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from classifierd.records import BLOCK_BYTES, Ints, Records, make

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Requests:
    """Writes and trims in order, columns [requests].

    `log`: of a file system's log or metadata. `owner`: whose data it is, a vStream.
    """

    trim: Flags
    offset_bytes: Ints
    length_bytes: Ints
    log: Flags
    owner: Ints
    time_us: Ints

    def as_sent(self) -> Records:
        """All of it, a page that is written in part as a whole one."""
        runs = self._pages(np.ones(len(self.log), np.bool_))
        return make(runs[:, 0], runs[:, 1], trim=self.trim)

    def as_files(self) -> Records:
        """The data, as many pages as the files have.

        The page is the one that a piece of 4 KiB begins in: pieces that do not overlap begin in
        different ones, wherever they lie.
        """
        data = ~self.log
        offset, length, trim = self.offset_bytes[data], self.length_bytes[data], self.trim[data]
        first = offset // BLOCK_BYTES
        pages = np.where(trim, (offset + length) // BLOCK_BYTES - first, -(-length // BLOCK_BYTES))
        kept = pages > 0
        out = make(first[kept], pages[kept], trim=trim[kept], vstream=self.owner[data][kept])
        time_us = np.maximum.accumulate(self.time_us[data][kept])  # two processors' may be inverted
        out["time_ms"] = np.minimum((time_us - time_us[:1]) // 1000, np.iinfo(np.uint32).max)
        return out

    def log_runs(self) -> Ints:
        """Where the log and the metadata lie, i64[runs, 2]: first page, pages."""
        return self._pages(self.log & ~self.trim)

    def commits(self) -> int:
        """How often the log was written to with data before it, as an fsync does."""
        log = (self.log & ~self.trim).astype(np.int8)
        return int((np.diff(log, prepend=0) == 1).sum())

    def _pages(self, which: Flags) -> Ints:
        first = self.offset_bytes[which] // BLOCK_BYTES
        end = -(-(self.offset_bytes[which] + self.length_bytes[which]) // BLOCK_BYTES)
        return np.column_stack([first, end - first])
