"""Where on its device a mounted file system holds data: ext4 and XFS say (FS_IOC_GETFSMAP)."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

import numpy as np

from classifierd.records import BLOCK_BYTES, Ints

# linux/fsmap.h: device, flags, physical, owner, offset, length, three reserved.
_ROW = struct.Struct("<IIQQQQQQQ")
_GETFSMAP = 0xC0C0583B
_ROWS_AT_ONCE = 4096
_SPECIAL, _LAST = 0x10, 0x80000000  # the owner is not a file's; the last row of all
_OWNER_UNKNOWN = 2  # ext4 says so of all data


def held_pages(mount: Path) -> Ints | None:
    """Which pages of its device it holds, i64[runs, 2]: first page, pages.

    None where it does not say.
    """
    try:
        return held(space_map(mount))
    except OSError:
        return None


def held(rows: Ints) -> Ints:
    """What lies between those rows of space_map() that are free or the file system's own tables.

    Tables: a young one has written little of them, and statfs does not count them either.
    """
    end = int((rows[:, 1] + rows[:, 2]).max(initial=0))
    taken = rows[(rows[:, 0] != 0) & (rows[:, 0] != _OWNER_UNKNOWN)]
    taken = taken[np.argsort(taken[:, 1], kind="stable")]
    first = np.append(0, taken[:, 1] + taken[:, 2])
    # A page that is free or a table's in part counts as held.
    pages = np.column_stack([first // BLOCK_BYTES, -(-np.append(taken[:, 1], end) // BLOCK_BYTES)])
    pages[:, 1] -= pages[:, 0]
    return pages[pages[:, 1] > 0]


def space_map(mount: Path) -> Ints:
    """What a file system says of its device's bytes, i64[rows, 3]: owner, first byte, bytes.

    The owner is 0 for a file's. Raises OSError (FS_IOC_GETFSMAP: linux/fsmap.h).
    """
    rows: list[tuple[int, int, int]] = []
    low, high = _ROW.pack(*[0] * 9), _ROW.pack(*[2**32 - 1] * 2, *[2**64 - 1] * 3, *[0] * 4)
    root = os.open(mount, os.O_RDONLY)
    try:
        while True:
            head = struct.pack("<IIII6Q", 0, 0, _ROWS_AT_ONCE, 0, *[0] * 6)
            answer = bytearray(head + low + high + bytes(_ROWS_AT_ONCE * _ROW.size))
            fcntl.ioctl(root, _GETFSMAP, answer)
            found = struct.unpack_from("<IIII", answer)[3]
            body = memoryview(answer)[len(head) + 2 * _ROW.size :]
            told = list(_ROW.iter_unpack(body[: found * _ROW.size]))
            rows += [(row[3] if row[1] & _SPECIAL else 0, row[2], row[5]) for row in told]
            if not told or told[-1][1] & _LAST:
                return np.array(rows, np.int64).reshape(-1, 3)
            low = _ROW.pack(*told[-1])
    finally:
        os.close(root)
