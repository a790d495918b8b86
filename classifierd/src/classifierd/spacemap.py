"""Where on its device a mounted file system holds data: ext4 and XFS say (FS_IOC_GETFSMAP)."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from classifierd.records import BLOCK_BYTES, Ints

# linux/fsmap.h: flags asked and told, rows that there is room for and that were told, reserved.
_HEAD = struct.Struct("<IIII48x")
_ROW = np.dtype(
    [
        ("device", "<u4"),
        ("flags", "<u4"),
        ("physical", "<u8"),
        ("owner", "<u8"),
        ("offset", "<u8"),
        ("length", "<u8"),
        ("reserved", "<u8", (3,)),
    ]
)
_GETFSMAP = 0xC0C0583B
_ROWS_AT_ONCE = 4096
_DEVICE_NUMBERS = 0x1  # told: devices are by number, as stat's
_SPECIAL, _LAST = 0x10, 0x20  # the owner is not a file's; the last row of all
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
    """The pages between the rows of space_map() that are free or the file system's own tables.

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
    """The file system's map of its device's bytes, i64[rows, 3]: owner, first byte, bytes.

    The owner is 0 for a file's. Other devices of it (a log's, XFS's for realtime data) are left
    out: their addresses are others. Raises OSError (FS_IOC_GETFSMAP: linux/fsmap.h).
    """
    root = os.open(mount, os.O_RDONLY)
    try:
        device, rows = None, [np.zeros((0, 3), np.int64)]
        for told, numbers in _answers(root):
            if device is None:  # Devices without numbers are counted; the own is first.
                device = os.fstat(root).st_dev if numbers else int(told["device"][0])
            owner = np.where(told["flags"] & _SPECIAL, told["owner"], 0)
            columns = np.column_stack([owner, told["physical"], told["length"]])
            rows.append(columns[told["device"] == device].astype(np.int64))
        return np.concatenate(rows)
    finally:
        os.close(root)


def _answers(root: int) -> Iterator[tuple[npt.NDArray[np.void], bool]]:
    """Rows as the kernel tells them, some at a time, and whether their devices are numbers."""
    low, high = np.zeros(1, _ROW), np.zeros(1, _ROW)
    for name in ("device", "flags", "physical", "owner", "offset"):
        high[name] = np.iinfo(_ROW[name]).max
    room = bytes(_ROWS_AT_ONCE * _ROW.itemsize)
    while True:
        head = _HEAD.pack(0, 0, _ROWS_AT_ONCE, 0)
        answer = bytearray(head + low.tobytes() + high.tobytes() + room)
        fcntl.ioctl(root, _GETFSMAP, answer)
        _, flags, _, found = _HEAD.unpack_from(answer)
        told = np.frombuffer(answer, _ROW, found, _HEAD.size + 2 * _ROW.itemsize)
        if found == 0:
            return
        yield told, bool(flags & _DEVICE_NUMBERS)
        if told["flags"][-1] & _LAST:
            return
        low = told[-1:]
